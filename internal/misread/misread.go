// Package misread says where a YAML file is wrong, in the way of compilers, so
// that editors jump there: FILE:LINE:COLUMN: what is wrong.
package misread

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// At writes an error of the YAML parser about a file on one line, with the
// place if the parser knows it.
func At(file string, err error) string {
	what, at := err.Error(), ""
	var y yaml.Error
	if errors.As(err, &y) {
		what = y.GetMessage()
		if token := y.GetToken(); token != nil && token.Position != nil {
			at = fmt.Sprintf(":%d:%d", token.Position.Line, token.Position.Column)
		}
	}
	what, _, _ = strings.Cut(what, "\n")
	return file + at + ": " + what
}
