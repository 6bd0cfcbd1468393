package cloud_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
)

// problemIn returns the problem document of a response, and checks that it is
// complete (RFC 9457).
func problemIn(t *testing.T, res *http.Response, data []byte) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatalf("status %d with a body that is no problem document: %q", res.StatusCode, data)
	}
	if res.Header.Get("Content-Type") != "application/problem+json" || p.Status != res.StatusCode || p.Code == "" ||
		p.Title == "" || p.Detail == "" || p.RequestID != res.Header.Get("X-Request-Id") {
		t.Errorf("incomplete problem document: %s %s", res.Header.Get("Content-Type"), data)
	}
	return p
}

// SPEC 5.3 rule 2, SPEC 7: a hidden snapshot gives the same response as one that does not exist, on
// every route and byte for byte. The test walks the route table, so a new route cannot escape it.
func TestHiddenIsNotFoundByteForByte(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	s := newScene(t, c)
	strangers := []string{"member", "viewer", "outsider"}
	for _, pattern := range c.Service.Routes() {
		if !strings.Contains(pattern, "/snapshots/{id}") || slices.Contains(onlyUsers, pattern) {
			continue
		}
		for _, body := range []string{"", "{", `{"unknown":1}`, matrix[pattern].body} {
			for _, caller := range strangers {
				key := credential(t, c, caller)
				hidden := fetch(t, s, pattern, s.id, body, key)
				for _, absent := range []string{snap.NewSnapshotID(), "snap_", "x", "snap_0"} {
					if never := fetch(t, s, pattern, absent, body, key); !reflect.DeepEqual(hidden, never) {
						t.Errorf("%s as %s with body %q: hidden and absent (%s) differ:\n%v\n%v", pattern, caller,
							body, absent, hidden,
							never)
					}
				}
				if hidden.status != http.StatusNotFound {
					t.Errorf("%s as %s: status %d", pattern, caller, hidden.status)
				}
			}
		}
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func fetch(t *testing.T, s scene, pattern, id, body, key string) answer {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.NewReplacer("{id}", id, "{groupId}", "dba", "{slug}", "globex").Replace(path)
	res, data := send(t, method, s.URL+api.MountAgent+path, body, key)
	res.Header.Del("Date")
	return answer{res.StatusCode, res.Header, string(data)}
}
