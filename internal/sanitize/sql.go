// Package sanitize masks a snapshot by column rules, with the user's own SQL in a scratch copy of
// the database, or both.
//
// It fails closed: if anything cannot be done exactly as requested, it returns an error and
// creates no sanitized snapshot. It never changes the original file.
package sanitize

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"snap"
	"snap/internal/engine"
)

// maxSQL is the maximum size of a SQL file in bytes.
const maxSQL = 64 << 20

// SQL is a list of statements that mask a database.
type SQL struct {
	Text   string
	SHA256 string // of the file, for the manifest
}

// ReadSQL reads a SQL file. It returns an error for a file without statements, as far as this can be
// seen without a server, which would mask nothing.
func ReadSQL(path string) (SQL, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return SQL{}, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no SQL file %s", path),
			Hint: "check the path; a relative path in config.yaml starts at the folder of config.yaml"}
	}
	if err == nil && info.IsDir() {
		return SQL{}, snap.Invalid(fmt.Sprintf("%s is a folder, not a SQL file", path), "give the path of a file")
	}
	if err == nil && info.Size() > maxSQL {
		return SQL{}, snap.Invalid(fmt.Sprintf("the SQL file %s is larger than %d MiB", path, maxSQL>>20),
			"mask with column rules, or with fewer statements")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return SQL{}, fmt.Errorf("read the SQL file: %w", err)
	}
	if bytes.IndexByte(text, 0) >= 0 { // SQLite would ignore the rest
		return SQL{}, snap.Invalid(fmt.Sprintf("the SQL file %s has a NUL character", path), "save it as UTF-8 text")
	}
	if blank(string(text)) {
		return SQL{}, noStatement("the SQL file " + path)
	}
	sum := sha256.Sum256(text)
	return SQL{Text: string(text), SHA256: hex.EncodeToString(sum[:])}, nil
}

func noStatement(sql string) error {
	return snap.Invalid(sql+" has no statement: it would mask nothing", "add the UPDATE statements that mask the data")
}

// blank reports whether text contains only whitespace, semicolons and comments, as SQLite reads it.
// Servers know more comments.
func blank(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\r\n\f\v;\ufeff")
		switch {
		case text == "":
			return true
		case strings.HasPrefix(text, "--"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text[2:], "*/")
		default:
			return false
		}
	}
}

// Apply runs the SQL in the scratch database and removes all traces of the values that it changed.
func (s SQL) Apply(ctx context.Context, scratch engine.Scratch) error {
	err := scratch.Run(ctx, s.Text)
	if errors.Is(err, engine.ErrNoStatement) {
		return noStatement("the SQL")
	}
	if err != nil {
		return err
	}
	return scratch.Scrub(ctx)
}
