package local

import (
	"fmt"
	"os"

	"snap"
)

// afterLoad returns the SQL that a load of a whole snapshot runs before the swap, or "".
func (a *Agent) afterLoad(t Target) (string, error) {
	if t.AfterLoad == "" {
		return "", nil
	}
	path := a.relativeToConfig(t.AfterLoad)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", snap.Usage(fmt.Sprintf("the SQL file %s of after_load cannot be read: %s", path, reason(err)),
			"correct targets."+t.Name+".after_load with `snapcli config edit`")
	}
	return string(text), nil
}
