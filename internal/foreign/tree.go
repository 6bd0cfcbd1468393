package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"snap"
	"snap/internal/disk"
)

const (
	maxNodes = 100_000 // an alias can repeat its content any number of times
	maxDepth = 50
)

// tree is a part of a YAML file. It records its position and whether it has been read.
type tree struct {
	path   string
	line   int
	text   string // value of a scalar
	scalar bool
	null   bool
	fields []*tree // of a mapping
	items  []*tree // of a sequence
	name   string  // name of the field
	seen   bool
}

// parse parses a YAML file.
func parse(file string, text []byte) (*tree, error) {
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, badYAML(file, err)
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil {
		return nil, snap.Usage(file+" is empty", "give the path of the other tool's configuration")
	}
	b := &builder{anchors: map[string]ast.Node{}}
	t, err := b.build(parsed.Docs[0].Body, "", 0)
	if err != nil {
		return nil, badYAML(file, err)
	}
	if t.fields == nil {
		return nil, snap.Usage(file+" is not a configuration: it has no settings",
			"give the path of the other tool's configuration")
	}
	return t, nil
}

func badYAML(file string, err error) error {
	return &snap.Error{Code: snap.CodeUsage, Detail: disk.YAMLMistake(file, err), Hint: "correct the file", Cause: err}
}

// builder converts the parser's nodes to a tree.
type builder struct {
	anchors map[string]ast.Node
	nodes   int
}

func (b *builder) build(n ast.Node, path string, depth int) (*tree, error) {
	if b.nodes++; b.nodes > maxNodes || depth > maxDepth {
		return nil, errors.New("the file is too large or too deep")
	}
	t := &tree{path: path}
	if token := n.GetToken(); token != nil && token.Position != nil {
		t.line = token.Position.Line
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		b.anchors[n.Name.GetToken().Value] = n.Value
		return b.build(n.Value, path, depth+1)
	case *ast.AliasNode:
		named, ok := b.anchors[n.Value.GetToken().Value]
		if !ok {
			return nil, fmt.Errorf("there is no anchor %s", n.Value.GetToken().Value)
		}
		return b.build(named, path, depth+1)
	case *ast.TagNode:
		return b.build(n.Value, path, depth+1)
	case *ast.MappingNode:
		return t, b.fields(t, n.Values, depth)
	case *ast.MappingValueNode:
		return t, b.fields(t, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		for i, item := range n.Values {
			child, err := b.build(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return nil, err
			}
			t.items = append(t.items, child)
		}
		return t, nil
	case *ast.NullNode:
		t.scalar, t.null = true, true
		return t, nil
	case *ast.LiteralNode:
		t.text, t.scalar = n.Value.Value, true
		return t, nil
	}
	t.scalar, t.text = true, n.GetToken().Value
	return t, nil
}

// fields adds the fields of a mapping. The mapping's own fields take precedence over merged fields
// (<<), and earlier merges over later ones.
func (b *builder) fields(t *tree, values []*ast.MappingValueNode, depth int) error {
	t.fields = []*tree{}
	var merged []*tree
	for _, pair := range values {
		name := pair.Key.GetToken().Value
		child, err := b.build(pair.Value, strings.TrimPrefix(t.path+"."+name, "."), depth+1)
		if err != nil {
			return err
		}
		if _, merge := pair.Key.(*ast.MergeKeyNode); merge {
			for _, from := range append([]*tree{child}, child.items...) {
				merged = append(merged, from.fields...)
			}
			continue
		}
		child.line, child.name = pair.Key.GetToken().Position.Line, name
		t.fields = append(t.fields, child)
	}
	named := map[string]bool{}
	for _, f := range t.fields {
		named[f.name] = true
	}
	for _, f := range merged {
		if !named[f.name] {
			named[f.name], t.fields = true, append(t.fields, f)
		}
	}
	return nil
}

// get returns a field and marks it as read. It returns nil if there is none, or if t is nil.
func (t *tree) get(name string) *tree {
	if t == nil {
		return nil
	}
	t.seen = true
	for _, f := range t.fields {
		if f.name == name {
			f.seen = true
			return f
		}
	}
	return nil
}

// value returns the text of a field, or "" if there is no such field or it is not a scalar.
func (t *tree) value(name string) string {
	if f := t.get(name); f != nil && f.scalar {
		return f.text
	}
	return ""
}

// number returns the number in a field, or 0 if there is none.
func (t *tree) number(name string) float64 {
	n, _ := strconv.ParseFloat(t.value(name), 64)
	return n
}

// allFields returns the fields and marks them as read.
func (t *tree) allFields() []*tree {
	if t == nil {
		return nil
	}
	t.seen = true
	for _, f := range t.fields {
		f.seen = true
	}
	return t.fields
}

// list returns the items and marks them as read. A scalar counts as a list with one item.
func (t *tree) list() []*tree {
	if t == nil {
		return nil
	}
	t.seen = true
	if t.scalar && !t.null {
		return []*tree{t}
	}
	for _, i := range t.items {
		i.seen = true
	}
	return t.items
}

// markRead marks the whole tree as read.
func (t *tree) markRead() {
	t.seen = true
	for _, child := range slices.Concat(t.fields, t.items) {
		child.markRead()
	}
}

// unread calls do for each outermost part that has not been read. It does nothing if t is nil.
func (t *tree) unread(do func(*tree)) {
	if t == nil {
		return
	}
	for _, child := range slices.Concat(t.fields, t.items) {
		if !child.seen {
			do(child)
			continue
		}
		child.unread(do)
	}
}
