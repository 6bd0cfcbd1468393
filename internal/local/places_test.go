package local

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSamePlace recognizes a source that another URL names as a destination.
func TestSamePlace(t *testing.T) {
	t.Parallel()
	service := filepath.Join(t.TempDir(), "services")
	if err := os.WriteFile(service, []byte("[live]\nhost=db.example\nport=5433\ndbname=shop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := "postgres://?service=live&servicefile=" + service
	for _, c := range []struct {
		source, destination, want string
	}{
		{"postgres://a@db.example:5433/shop", named, "is the target's own source"},
		{"postgres://a@one.example,db.example:5433/shop", named, "is the target's own source"},
		{"postgres://a@db.example:5433/other", named, ""},
		{"postgres://a@localhost/shop", "postgres://b@/shop?host=/run/postgresql", "is the target's own source"},
		{"mysql://a:p@LOCALHOST/shop", "mysql://b:p@127.0.0.1:3306/shop", "is the target's own source"},
		{"mysql://a:p@db/shop", "mysql://b:p@db/shop_dev", ""},
		{"", "postgres://a@one.example,prod.example/shop", "looks like production by its name"},
	} {
		a := &Agent{env: func(string) string { return "" }, file: &configFile{}}
		to, err := a.databaseAt(c.destination)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.production(Target{Source: c.source}, to); got != c.want {
			t.Errorf("%s: %q, want %q", c.destination, got, c.want)
		}
	}
}
