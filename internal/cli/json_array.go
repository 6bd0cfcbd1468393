package cli

import (
	"encoding/json"
	"fmt"
	"io"
)

// jsonArray writes a JSON array element by element, one per line, so that a long list is neither
// delayed nor held in memory.
type jsonArray struct {
	to    io.Writer
	began bool
}

func (j *jsonArray) add(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	before := ",\n  "
	if !j.began {
		before = "[\n  "
	}
	j.began = true
	_, err = io.WriteString(j.to, before+escapeControls(string(data)))
	return err
}

func (j *jsonArray) end() error {
	last := "\n]\n"
	if !j.began {
		last = "[]\n"
	}
	_, err := io.WriteString(j.to, last)
	return err
}
