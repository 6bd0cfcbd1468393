package mysql

import (
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestRunExplains checks that the error of a server that cannot list triggers is explained.
func TestRunExplains(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		url := servertest.MySQL(t, server)
		s, err := Engine{}.Restore(t.Context(), url, emptyDump(t), engine.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Drop(t.Context())
		script(t, url, "DROP DATABASE "+quote(s.(*scratch).db.name))
		if err := s.Run(t.Context(), "SELECT 1"); snap.CodeOf(err) != snap.CodeNotFound {
			t.Error(err)
		}
	})
}
