package local

import (
	"os"
	"path/filepath"
	"testing"

	"snap/internal/reach"
)

// TestSamePlace checks that a source is recognized even if the destination names it with a
// different URL.
func TestSamePlace(t *testing.T) {
	t.Parallel()
	service := filepath.Join(t.TempDir(), "services")
	if err := os.WriteFile(service, []byte("[live]\nhost=db.example\nport=5433\ndbname=shop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	named := "postgres://?service=live&servicefile=" + service
	for _, c := range []struct {
		source, destination, want string
		via, destinationVia       string
	}{
		{source: "postgres://a@db.example:5433/shop", destination: named, want: "is the target's own source"},
		{
			source: "postgres://a@one.example,db.example:5433/shop", destination: named,
			want: "is the target's own source",
		},
		{source: "postgres://a@db.example:5433/other", destination: named, want: ""},
		{
			source: "postgres://a@localhost/shop", destination: "postgres://b@/shop?host=/run/postgresql",
			want: "is the target's own source",
		},
		{
			source: "mysql://a:p@LOCALHOST/shop", destination: "mysql://b:p@127.0.0.1:3306/shop",
			want: "is the target's own source",
		},
		{source: "mysql://a:p@db/shop", destination: "mysql://b:p@db/shop_dev", want: ""},
		{
			source: "", destination: "postgres://a@one.example,prod.example/shop",
			want: "looks like production by its name",
		},
		{source: "mysql://a@localhost/shop", via: "ssh://db.example", destination: "mysql://a@localhost/shop"},
		{
			source: "mysql://a@localhost/shop", via: "ssh://me@db.example", destination: "mysql://a@localhost/shop",
			destinationVia: "ssh://DB.example:2222", want: "is the target's own source",
		},
		{
			source: "mysql://a@localhost/shop", via: "ssh://db.example", destination: "mysql://a@db.example/shop",
			want: "is the target's own source",
		},
		{
			source: "mysql://a@db.example/shop", via: "ssh://bastion", destination: "mysql://a@db.example/shop",
			want: "is the target's own source",
		},
	} {
		none := func(string) string { return "" }
		a := &Agent{env: none, file: &configFile{}, tunnels: &reach.Tunnels{Env: none}}
		to, err := a.databaseAt(place{raw: c.destination, via: c.destinationVia})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.production(Target{Source: c.source, Via: c.via}, to); got != c.want {
			t.Errorf("%s: %q, want %q", c.destination, got, c.want)
		}
	}
}
