package blob

import (
	"bufio"
	"encoding/json"
	"os"
)

// entry is one line of a journal of parts. The last line of a number counts.
type entry struct {
	Number int    `json:"n"`
	CRC64  string `json:"crc64nvme"`
}

// appendJournal notes a part that landed. The journal must be there, so that a
// part of an upload that was dropped meanwhile is not confirmed.
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

// readJournal returns the parts that were noted. A line that was torn by a
// crash is passed over.
func readJournal(path string, h head) (map[int]Part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	parts := map[int]Part{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if _, size := h.span(e.Number); size > 0 {
			parts[e.Number] = Part{Number: e.Number, Size: size, CRC64: e.CRC64}
		}
	}
	return parts, lines.Err()
}
