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

// ReplaceJSON writes v as indented JSON to a file, as [Replace] does. Only the owner can read a new
// file.
func ReplaceJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, append(text, '\n'), 0o600)
}
