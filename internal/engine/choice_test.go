package engine

import (
	"errors"
	"testing"

	"snap"
)

// An error about a part that only PostgreSQL supports says how to do without it.
func TestRequireTablesOnly(t *testing.T) {
	t.Parallel()
	for want, c := range map[[2]string]Choice{
		{"", ""}: {Tables: []string{"a"}, Exclude: []string{"b"}, ExcludeData: []string{"c"}},
		{"only PostgreSQL databases have schemas", "choose tables by their names"}: {Schemas: []string{"a"}},
		{"only PostgreSQL databases have extensions",
			"remove the flag --exclude-extension, or the target's setting exclude_extensions"}: {
			Extensions: []string{"a"}},
		{"only PostgreSQL databases have event_triggers and publications",
			"remove the flag --omit, or the target's setting omit"}: {
			Omit: []string{OmitEventTriggers, OmitPublications}},
	} {
		var got [2]string
		if e, ok := errors.AsType[*snap.Error](c.RequireTablesOnly()); ok {
			got = [2]string{e.Error(), e.Hint}
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
