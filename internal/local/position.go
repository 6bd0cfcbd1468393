package local

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Position returns the file, line and column of a setting's value, such as config.yaml:12:5, or ""
// if the setting is not in the file.
func (a *Agent) Position(key string) string {
	a.file.mu.Lock()
	defer a.file.mu.Unlock()
	path, _ := resolve(reflect.TypeFor[Config](), reflect.ValueOf(a.file.config), strings.Split(key, "."))
	file, err := parser.ParseBytes(a.file.text, 0)
	if err != nil || len(file.Docs) == 0 || len(path) == 0 || !a.file.inFile.Exists(strings.Join(path, keyDelim)) {
		return ""
	}
	node := file.Docs[0].Body
	for _, name := range path {
		var next ast.Node
		for _, p := range pairs(node) {
			if keyOf(p) == name {
				next = p.Value
			}
		}
		if next == nil || next.GetToken() == nil {
			return ""
		}
		node = next
	}
	at := node.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", filepath.Base(a.file.path), at.Line, at.Column)
}
