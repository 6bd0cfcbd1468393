package postgres

import (
	"strings"
	"testing"

	"snap"
)

// FuzzURL checks that a connection URL is accepted or refused, and that its form
// for program arguments, which every user of the machine can read, has no password.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"postgres://me@localhost/shop", "postgres://me:verysecret@h:5/d?sslmode=disable",
		"host=h password=verysecret", "postgres://h/d?password=verysecret", "postgres:///d?host=/tmp",
		"postgres://[::1]:5/x", "postgres://h/d?sslpassword=verysecret", "postgres://a,b/d", "", "postgres://%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		d, err := parse(raw)
		if err != nil {
			if snap.CodeOf(err) != snap.CodeUsage {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if p := d.config.Password; len(p) > 7 && strings.Contains(d.public(), p) && strings.Count(raw, p) == 1 {
			t.Fatalf("%q shows its password as %q", raw, d.public())
		}
		if again, err := parse(d.url()); err == nil && again.config.Password != d.config.Password &&
			d.config.Password != "" {
			t.Fatalf("%q lost its password as %q", raw, d.url())
		}
	})
}
