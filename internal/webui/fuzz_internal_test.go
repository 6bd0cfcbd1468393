package webui

import (
	"net/url"
	"testing"
)

// FuzzQuery: the address of a listing is one of ours, and has the same meaning when it is parsed
// again.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "show=local&q=x", "sort=size&cursor=%00", "before=2026-01-01T00:00:00Z",
		"type=sanitized&target=a%2Fb", "before=9999-12-31T23:59:59.999999999Z", "q=%20x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		values, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q := parseQuery(values)
		u, err := url.Parse(q.URL())
		if err != nil || u.Path != "/snapshots" || u.Host != "" {
			t.Fatalf("%q has the address %q, %v", raw, q.URL(), err)
		}
		if again := parseQuery(u.Query()); again.URL() != q.URL() || !again.Before.Equal(q.Before) {
			t.Fatalf("%q is %+v, read again %+v", raw, q, again)
		}
	})
}
