package disk_test

import (
	"errors"
	"testing"

	"github.com/goccy/go-yaml"

	"snap/internal/disk"
)

func TestYAMLMistake(t *testing.T) {
	t.Parallel()
	var into struct {
		Known int
		Yes   bool
		Names []string
	}
	unknown := yaml.UnmarshalWithOptions([]byte("known: 1\nother: 2\n"), &into, yaml.DisallowUnknownField())
	for want, err := range map[string]error{
		`a.yaml:2:1: unknown field "other"`:                   unknown,
		`a.yaml:2:6: expected true or false, found "many"`:    yaml.Unmarshal([]byte("known: 1\nyes: many\n"), &into),
		`a.yaml:1:8: expected a whole number, found "many"`:   yaml.Unmarshal([]byte("known: many\n"), &into),
		`a.yaml:1:8: expected a list, found "5"`:              yaml.Unmarshal([]byte("names: 5\n"), &into),
		`a.yaml:2:1: found a tab that cannot start any token`: yaml.Unmarshal([]byte("names:\n\t- a\n"), &into),
		"a.yaml: no line is known": errors.New("no line is known\nand this is " +
			"more than a line"),
	} {
		if got := disk.YAMLMistake("a.yaml", err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
