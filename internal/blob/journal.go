package blob

import (
	"bytes"
	"encoding/json"
	"os"
)

// entry is one line of a journal of parts. Only the last line for a part number counts.
type entry struct {
	Number int    `json:"n"`
	CRC64  string `json:"crc64nvme"`
}

// appendJournal records that a part arrived. The journal must exist, so that a part is not
// confirmed if its upload was dropped in the meantime.
func appendJournal(path string, p Part) error {
	line, err := json.Marshal(entry{p.Number, p.CRC64})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(append([]byte("\n"), line...), '\n'))
	return err
}

// readJournal returns the recorded parts. It ignores a line that a crash left incomplete.
func readJournal(path string, h head) (map[int]Part, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parts := map[int]Part{}
	for line := range bytes.Lines(text) {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if _, size := h.span(e.Number); size > 0 {
			parts[e.Number] = Part{Number: e.Number, Size: size, CRC64: e.CRC64}
		}
	}
	return parts, nil
}
