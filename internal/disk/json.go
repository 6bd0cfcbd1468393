package disk

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// ReadJSON reads the JSON in a file into v. If the file does not exist, v does not change.
func ReadJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// ReplaceJSON replaces or creates a file that only its owner can read, as [Replace] does, with v as
// indented JSON.
func ReplaceJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, append(text, '\n'), 0o600)
}
