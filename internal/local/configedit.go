package local

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"snap"
)

// The sections of the file whose entries have names.
const (
	sectionTargets  = "targets"
	sectionProfiles = "storage_profiles"
)

// editTarget calls the function change with the target in the file, or with nil if there is none.
// It writes the result to the file, or removes the target if the result is nil.
func (f *configFile) editTarget(name string, change func(old *Target) (*Target, error)) error {
	return f.edit(sectionTargets, name, func(c *Config) (any, error) {
		var old *Target
		if t, ok := c.Targets[name]; ok {
			old = &t
		}
		t, err := change(old)
		if err != nil || t == nil {
			delete(c.Targets, name)
			return nil, err
		}
		copied := *t
		copied.Name = ""
		if c.Targets == nil {
			c.Targets = map[string]Target{}
		}
		c.Targets[name] = copied
		return copied, nil
	})
}

// addProfile writes a storage profile to the file.
func (f *configFile) addProfile(name string, p StorageProfile) error {
	return f.edit(sectionProfiles, name, func(c *Config) (any, error) {
		if c.StorageProfiles == nil {
			c.StorageProfiles = map[string]StorageProfile{}
		}
		c.StorageProfiles[name] = p
		return p, nil
	})
}

// edit writes an entry to a section of the file, or removes it if the entry is nil. change receives
// the configuration in the file, without the environment. It changes that configuration and returns
// the entry. edit replaces the lines of that entry, and the section's own line if the section is
// empty. The other lines remain, including their comments and order; comments in the replaced lines
// are lost. Before writing, it parses the new text and compares the result with the changed
// configuration.
func (f *configFile) edit(section, name string, change func(*Config) (entry any, err error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.read(); err != nil { // another program may have changed the file
		return err
	}
	var want Config
	if err := yaml.Unmarshal(f.text, &want); err != nil {
		return badConfig(f.path, err)
	}
	entry, err := change(&want)
	if err != nil {
		return err
	}
	text, err := splice(f.text, section, name, entry)
	if err != nil {
		return err
	}
	if !holds(text, want) {
		return snap.Usage(fmt.Sprintf("the file %s uses YAML syntax that snapcli cannot edit", f.path),
			"change it with `snapcli config edit`")
	}
	return f.write(text)
}

// splice returns text with one entry of a section replaced or added or, if value is nil, removed.
func splice(text []byte, within, name string, value any) ([]byte, error) {
	lines := linesOf(text)
	section, entry, err := findEntry(text, within, name)
	if err != nil {
		return nil, err
	}
	if section.from < 0 { // the section does not exist yet
		body, err := entryLines(name, value, "  ")
		return join(append(lines, []byte(within+":\n"), body)), err
	}
	indent := section.indent
	body, err := entryLines(name, value, indent)
	if err != nil {
		return nil, err
	}
	at, until := entry.from, trimBlank(lines, max(entry.from, 0), entry.until)
	if entry.from < 0 {
		at = trimBlank(lines, section.from+1, section.until)
		until = at
	}
	if section.empty { // the section is {} or has no value
		lines[section.from] = []byte(within + ":\n")
		at, until = section.from+1, section.from+1
	}
	return join(lines[:at], [][]byte{body}, lines[until:]), nil
}

// span is a range of lines. from is -1 if the section or entry does not exist.
type span struct {
	from, until int
	indent      string
	empty       bool
}

// findEntry returns the lines of a section and of one entry in it.
func findEntry(text []byte, within, name string) (section, entry span, err error) {
	section, entry = span{from: -1}, span{from: -1}
	file, err := parser.ParseBytes(text, parser.ParseComments)
	if err != nil {
		return section, entry, fmt.Errorf("parse: %w", err)
	}
	if len(file.Docs) == 0 {
		return section, entry, nil
	}
	top := pairs(file.Docs[0].Body)
	for i, pair := range top {
		if keyOf(pair) != within {
			continue
		}
		section = span{from: lineOf(pair), until: len(linesOf(text)), indent: "  "}
		if i+1 < len(top) {
			section.until = lineOf(top[i+1])
		}
		inner := pairs(pair.Value)
		section.empty = len(inner) == 0
		for j, t := range inner {
			section.indent = strings.Repeat(" ", t.Key.GetToken().Position.Column-1)
			if keyOf(t) != name {
				continue
			}
			entry = span{from: lineOf(t), until: section.until}
			if j+1 < len(inner) {
				entry.until = lineOf(inner[j+1])
			}
		}
	}
	return section, entry, nil
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func lineOf(p *ast.MappingValueNode) int { return p.Key.GetToken().Position.Line - 1 }

func keyOf(p *ast.MappingValueNode) string { return p.Key.GetToken().Value }

// trimBlank moves the end of a span up past blank lines and comments, which belong to the next
// entry.
func trimBlank(lines [][]byte, from, until int) int {
	for until > from {
		line := bytes.TrimSpace(lines[until-1])
		if len(line) > 0 && line[0] != '#' {
			break
		}
		until--
	}
	return until
}

func entryLines(name string, value any, indent string) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	text, err := yaml.Marshal(map[string]any{name: value})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.WriteString(indent)
		b.Write(line)
	}
	return b.Bytes(), nil
}

// linesOf splits a text into lines, each with a line break at its end.
func linesOf(text []byte) [][]byte {
	lines := slices.Collect(bytes.Lines(text))
	if n := len(lines); n > 0 && !bytes.HasSuffix(lines[n-1], []byte("\n")) {
		lines[n-1] = append(lines[n-1], '\n')
	}
	return lines
}

func join(parts ...[][]byte) []byte { return bytes.Join(slices.Concat(parts...), nil) }

// isOnlyChange reports whether the edited text differs from the old one by exactly this change.
func isOnlyChange(text, old []byte, change func(*Config)) bool {
	var want Config
	if yaml.Unmarshal(old, &want) != nil {
		return false
	}
	change(&want)
	return holds(text, want)
}

// holds reports whether a text holds exactly this configuration.
func holds(text []byte, want Config) bool {
	var got Config
	if yaml.UnmarshalWithOptions(text, &got, yaml.DisallowUnknownField()) != nil {
		return false
	}
	for _, c := range []*Config{&got, &want} { // an empty section equals a missing one
		if len(c.Targets) == 0 {
			c.Targets = nil
		}
		if len(c.StorageProfiles) == 0 {
			c.StorageProfiles = nil
		}
	}
	return reflect.DeepEqual(got, want)
}
