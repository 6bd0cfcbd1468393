package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"snap"
	"snap/internal/engine"
)

var _ engine.Inspector = Engine{}

// Needs implements [engine.Inspector].
func (Engine) Needs(_ context.Context, raw string, u engine.Use) ([]engine.Need, error) {
	path, err := Path(raw)
	if err != nil {
		return nil, err
	}
	if u == engine.ForBuild {
		file, err := os.Open(path)
		if err != nil {
			return []engine.Need{unusable(path, "read", "r", err)}, nil
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.Size() == 0 {
			return nil, noTables()
		}
		return nil, nil
	}
	return needsOfLoad(path), nil
}

// needsOfLoad returns the permissions that a load needs and the user lacks: on the file, and on the
// folder in which the new file is created.
func needsOfLoad(path string) []engine.Need {
	var needs []engine.Need
	if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		file.Close()
	} else if !errors.Is(err, os.ErrNotExist) {
		needs = append(needs, unusable(path, "written", "rw", err))
	}
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, ".snapcli-check-*")
	if err != nil {
		return append(needs, unusable(dir, "written to", "rwx", err))
	}
	file.Close()
	os.Remove(file.Name())
	return needs
}

func unusable(path, action, mode string, err error) engine.Need {
	n := engine.Need{Code: snap.CodeDatabase, What: fmt.Sprintf("%s cannot be %s: %v", path, action, err),
		Remedy: fmt.Sprintf("chmod u+%s %s, or run as the user who owns it", mode, snap.ShellWord(path))}
	if errors.Is(err, os.ErrNotExist) {
		n.Code, n.Remedy = snap.CodeNotFound, "mkdir -p "+snap.ShellWord(path)
	}
	return n
}
