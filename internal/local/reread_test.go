package local

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// A snapshot is not intact if its checksums are right but no load would accept its dump.
func TestVerifyReadsAsALoadDoes(t *testing.T) {
	t.Parallel()
	for kind, source := range map[snap.Engine]func(*testing.T, shop) string{
		snap.SQLite: func(t *testing.T, s shop) string {
			run(t, s.source, "CREATE INDEX by_email ON customer (email)")
			return "sqlite://" + s.source
		},
		snap.Postgres: func(t *testing.T, _ shop) string {
			url := servertest.Postgres(t)
			execute(t, url, "CREATE TABLE customer (id int PRIMARY KEY, email text); INSERT INTO customer SELECT "+
				"n, 'p' "+
				"|| n FROM generate_series(1, 5000) n")
			return url
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			url := source(t, s)
			e, err := s.engineFor(kind)
			if err != nil {
				t.Fatal(err)
			}
			var dump bytes.Buffer
			info, err := e.Dump(t.Context(), url, &dump, engine.Options{Jobs: 1, TempDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			verify := func(dump []byte, info engine.Info) error {
				made, err := s.writeSnapshot(t.Context(), draft{Manifest: archive.Manifest{Target: shopTarget,
					Type:   snap.TypeSnapshot,
					Engine: kind}, from: Provenance{Origin: Mine}, jobs: 1}, func(w io.Writer) (engine.Info, error) {
					_, err := w.Write(dump)
					return info, err
				})
				if err == nil {
					_, err = s.Verify(t.Context(), made.Name, nil)
				}
				return err
			}
			whole := dump.Bytes()
			if err := verify(whole, info); err != nil {
				t.Fatalf("the whole dump: %v", err)
			}
			cut := whole[:len(whole)-5000]
			if err := verify(cut, info); snap.CodeOf(err) != snap.CodeCorrupt {
				t.Errorf("a cut dump: %v", err)
			}
			if kind == snap.SQLite {
				bad := bytes.Clone(whole)
				for i := range bad[len(bad)-4096 : len(bad)-4000] {
					bad[len(bad)-4096+i] = 'Z'
				}
				if err := verify(bad, info); snap.CodeOf(err) != snap.CodeCorrupt {
					t.Errorf("a damaged page: %v", err)
				}
			}
			info.Tables[0].Rows++
			if err := verify(whole, info); snap.CodeOf(err) != snap.CodeCorrupt || !strings.Contains(err.Error(),
				"rows") {
				t.Errorf("another number of rows: %v", err)
			}
		})
	}
}
