package sanitize

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// positions returns the position (line and column) of every rule in a rules file, by the names of
// the rule's table and column. The column's name is "" for the table's own rule. A setting of the
// whole file is listed as a column of the table "", and a pattern in the list of the setting "keep"
// as a column of the table keepPlace.
func positions(text []byte) map[[2]string]string {
	all := map[[2]string]string{}
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return all
	}
	each(file.Docs[0].Body, func(setting string, at ast.MapKeyNode, value ast.Node) {
		all[[2]string{"", setting}] = lineAndColumn(at)
		if list, ok := value.(*ast.SequenceNode); ok && setting == "keep" {
			for _, v := range list.Values {
				if t := v.GetToken(); t != nil {
					all[[2]string{keepPlace, t.Value}] = lineAndColumn(v)
				}
			}
		}
	})
	eachTable(file.Docs[0].Body, func(table string, at ast.MapKeyNode, _ ast.Node) {
		all[[2]string{table, ""}] = lineAndColumn(at)
	})
	eachRule(file.Docs[0].Body, func(table, column string, at ast.MapKeyNode, _ ast.Node) {
		all[[2]string{table, column}] = lineAndColumn(at)
	})
	return all
}

// eachTable calls see with the tables of a rules file.
func eachTable(body ast.Node, see func(table string, at ast.MapKeyNode, value ast.Node)) {
	each(body, func(key string, _ ast.MapKeyNode, value ast.Node) {
		if key == "tables" {
			each(value, see)
		}
	})
}

// eachRule calls see with the rules of columns in a rules file.
func eachRule(body ast.Node, see func(table, column string, at ast.MapKeyNode, value ast.Node)) {
	eachTable(body, func(table string, _ ast.MapKeyNode, value ast.Node) {
		each(value, func(key string, _ ast.MapKeyNode, value ast.Node) {
			if key != "columns" {
				return
			}
			each(value, func(column string, at ast.MapKeyNode, value ast.Node) { see(table, column, at, value) })
		})
	})
}

// each calls see with the entries of a mapping. Other nodes have none.
func each(n ast.Node, see func(key string, at ast.MapKeyNode, value ast.Node)) {
	if a, ok := n.(*ast.AnchorNode); ok {
		n = a.Value
	}
	m, ok := n.(ast.MapNode)
	if !ok {
		return
	}
	for i := m.MapRange(); i.Next(); {
		if t := i.Key().GetToken(); t != nil {
			see(t.Value, i.Key(), i.Value())
		}
	}
}

// keepPlace replaces the name of a table for the patterns of keep. No table can have this name.
const keepPlace = "\x00keep"

// Where returns the rules file and the position of one of its settings, such as
// "shop.rules.yaml:3:1".
func (r *Rules) Where(setting string) string { return r.path + r.places[[2]string{"", setting}] }

func lineAndColumn(n ast.Node) string {
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return ""
	}
	return fmt.Sprintf(":%d:%d", t.Position.Line, t.Position.Column)
}

// line returns the position of a rule for a message, such as " (line 7, column 5)", or "" if it is
// not known.
func (r *Rules) line(table, column string) string {
	line, at, ok := strings.Cut(strings.TrimPrefix(r.places[[2]string{table, column}], ":"), ":")
	if !ok {
		return ""
	}
	return " (line " + line + ", column " + at + ")"
}
