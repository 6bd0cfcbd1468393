package local

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// errForm means that the file has a form that cannot be edited in place.
var errForm = errors.New("the value cannot be replaced in place")

// setValue returns text with the value at a path replaced or added. The path has the names of the
// groups around a setting, and then its own name. Everything else in the text remains, including
// comments; if that is impossible, setValue fails.
func setValue(text []byte, path []string, value any) ([]byte, error) {
	file, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	e := &settingEdit{lines: linesOf(text), value: value}
	var body ast.Node
	if len(file.Docs) > 0 {
		body = file.Docs[0].Body
	}
	if err := e.set(body, path); err != nil {
		return nil, err
	}
	edited := join(e.lines)
	if !keeps(comments(edited), comments(text)) {
		return nil, errForm
	}
	return edited, nil
}

// settingEdit is one edit of one value.
type settingEdit struct {
	lines [][]byte
	value any
}

func (e *settingEdit) set(node ast.Node, path []string) error {
	var parent *ast.MappingValueNode // the entry whose value is node; nil at the top level
	until := len(e.lines)
	for depth, name := range path {
		inner := pairs(node)
		i := slices.IndexFunc(inner, func(p *ast.MappingValueNode) bool { return keyOf(p) == name })
		if i < 0 {
			return e.add(parent, node, until, path[depth:])
		}
		if i+1 < len(inner) && !isFlow(node) {
			until = lineOf(inner[i+1])
		}
		parent, node = inner[i], inner[i].Value
	}
	return e.replace(parent, until)
}

func isFlow(n ast.Node) bool {
	m, ok := n.(*ast.MappingNode)
	return ok && m.IsFlowStyle
}

// add writes a new entry into the mapping node. parent is the entry whose value is node.
func (e *settingEdit) add(parent *ast.MappingValueNode, node ast.Node, until int, path []string) error {
	m, isMapping := node.(*ast.MappingNode)
	switch {
	case parent == nil:
		return e.insert(len(e.lines), "", path)
	case isMapping && m.IsFlowStyle && len(m.Values) > 0:
		text, err := inFlow(path, e.value)
		if err != nil {
			return err
		}
		return e.splice(m.End.Position.Line-1, m.End.Position.Column-1, 0, ", "+text)
	case len(pairs(node)) == 0:
		if err := e.clear(node); err != nil {
			return err
		}
		return e.insert(lineOf(parent)+1, strings.Repeat(" ", parent.Key.GetToken().Position.Column+1), path)
	}
	indent := strings.Repeat(" ", pairs(node)[0].Key.GetToken().Position.Column-1)
	return e.insert(trimBlank(e.lines, lineOf(parent)+1, until), indent, path)
}

// clear removes an empty value, such as {}, from its line.
func (e *settingEdit) clear(node ast.Node) error {
	m, ok := node.(*ast.MappingNode)
	if !ok {
		if node.Type() == ast.NullType && !isWrittenNull(node) {
			return nil
		}
		return errForm
	}
	from, to := m.Start.Position, m.End.Position
	if from.Line != to.Line {
		return errForm
	}
	return e.splice(from.Line-1, from.Column-1, to.Column-from.Column+1, "")
}

// isWrittenNull reports whether a null is written out, as null or ~.
func isWrittenNull(node ast.Node) bool { return node.GetToken().Type == token.NullType }

// insert writes a whole entry, including its missing groups, before a line.
func (e *settingEdit) insert(line int, indent string, path []string) error {
	var body [][]byte
	for i, name := range path {
		key, err := inLine(name)
		if err != nil {
			return err
		}
		text := indent + strings.Repeat("  ", i) + key + ":"
		if i == len(path)-1 {
			value, err := inLine(e.value)
			if err != nil {
				return err
			}
			text += " " + value
		}
		body = append(body, []byte(text+"\n"))
	}
	e.lines = slices.Insert(e.lines, line, body...)
	return nil
}

// replace overwrites the value of an entry. The entry ends before the line with index until.
func (e *settingEdit) replace(at *ast.MappingValueNode, until int) error {
	text, err := inFlow(nil, e.value) // the flow style is valid here and everywhere else
	if err != nil {
		return err
	}
	switch v := at.Value.(type) {
	case *ast.NullNode:
		if tok := v.GetToken(); isWrittenNull(v) {
			return e.splice(tok.Position.Line-1, tok.Position.Column-1, len(tok.Value), text)
		}
		colon := at.Start.Position
		return e.splice(colon.Line-1, colon.Column, 0, " "+text)
	case *ast.SequenceNode:
		if v.IsFlowStyle && v.Start.Position.Line == v.End.Position.Line {
			from := v.Start.Position
			return e.splice(from.Line-1, from.Column-1, v.End.Position.Column-from.Column+1, text)
		}
		if v.IsFlowStyle {
			return errForm
		}
		from, to := lineOf(at), trimBlank(e.lines, lineOf(at)+1, until)
		colon := at.Start.Position
		line := string([]rune(string(e.lines[from]))[:colon.Column]) + " " + text + "\n"
		e.lines = slices.Replace(e.lines, from, to, []byte(line))
		return nil
	case ast.ScalarNode:
		tok := v.GetToken()
		old := strings.TrimSpace(tok.Origin)
		if strings.Contains(old, "\n") || tok.Type == token.LiteralType || tok.Type == token.FoldedType {
			return errForm
		}
		return e.splice(tok.Position.Line-1, tok.Position.Column-1, len([]rune(old)), text)
	}
	return errForm
}

// splice replaces n characters of a line.
func (e *settingEdit) splice(line, column, n int, text string) error {
	if line < 0 || line >= len(e.lines) {
		return errForm
	}
	old := []rune(string(e.lines[line]))
	if column < 0 || column+n > len(old) {
		return errForm
	}
	e.lines[line] = []byte(string(old[:column]) + text + string(old[column+n:]))
	return nil
}

// inLine formats a value on one line.
func inLine(value any) (string, error) {
	if list, ok := value.([]string); ok {
		var all []string
		for _, entry := range list {
			all = append(all, quoteInFlow(entry))
		}
		return "[" + strings.Join(all, ", ") + "]", nil
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("write the value: %w", err)
	}
	line := strings.TrimSpace(string(text))
	if strings.Contains(line, "\n") {
		return "", errForm
	}
	return line, nil
}

// inFlow formats a value, and the groups around it, in flow style, as between braces.
func inFlow(path []string, value any) (text string, err error) {
	if s, ok := value.(string); ok {
		text = quoteInFlow(s)
	} else if text, err = inLine(value); err != nil {
		return "", err
	}
	for i := len(path) - 1; i >= 0; i-- {
		text = quoteInFlow(path[i]) + ": " + text
		if i > 0 {
			text = "{" + text + "}"
		}
	}
	return text, nil
}

func quoteInFlow(s string) string {
	text, err := inLine(s)
	if err != nil || text == s && strings.ContainsAny(s, ",[]{}") {
		return strconv.Quote(s)
	}
	return text
}

// comments returns the comments of a text in order.
func comments(text []byte) (all []string) {
	for _, t := range lexer.Tokenize(string(text)) {
		if t.Type == token.CommentType {
			all = append(all, strings.TrimSpace(t.Value))
		}
	}
	return all
}

// keeps reports whether comments still contains all of old, in order.
func keeps(comments, old []string) bool {
	for _, c := range comments {
		if len(old) > 0 && c == old[0] {
			old = old[1:]
		}
	}
	return len(old) == 0
}
