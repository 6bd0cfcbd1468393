package disk

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// YAMLMistake formats a YAML parser error on one line as FILE:LINE:COLUMN: message, the form in
// which compilers report errors and editors find them. It omits the position if the parser does not
// know it.
func YAMLMistake(file string, err error) string {
	mistake, position := err.Error(), ""
	var y yaml.Error
	if errors.As(err, &y) {
		mistake = message(y)
		if token := y.GetToken(); token != nil && token.Position != nil {
			position = fmt.Sprintf(":%d:%d", token.Position.Line, token.Position.Column)
		}
	}
	mistake, _, _ = strings.Cut(mistake, "\n")
	return file + position + ": " + mistake
}

// message describes the parser's error in terms of YAML rather than Go, and names invisible
// characters.
func message(err yaml.Error) string {
	var kind *yaml.TypeError
	if errors.As(err, &kind) && kind.Token != nil {
		return fmt.Sprintf("expected %s, found %q", expected(kind.DstType), kind.Token.Value)
	}
	var node *yaml.UnexpectedNodeTypeError
	if errors.As(err, &node) && node.Token != nil {
		return fmt.Sprintf("expected %s, found %q", expectedNode(node.Expected), node.Token.Value)
	}
	return strings.Replace(err.GetMessage(), "character '\t'", "a tab", 1)
}

func expectedNode(t ast.NodeType) string {
	switch t {
	case ast.SequenceType:
		return "a list"
	case ast.MappingType:
		return "a mapping of names to values"
	}
	return "text"
}

func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping of names to values"
	}
	return "text"
}
