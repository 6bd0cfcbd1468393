package cloud_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"snap/api"
	"snap/internal/cloudtest"
)

// TestTextThatCannotBeStored: PostgreSQL cannot store NUL characters and text that is not UTF-8. In
// the path of a request, such text is an ID that does not exist, and in its query, body or form it is
// refused. SQLite could store it, but the answers are the same.
func TestTextThatCannotBeStored(t *testing.T) {
	t.Parallel()
	bothDatabases(t, func(t *testing.T, c *cloudtest.Cloud) {
		key, scim, owner := c.Key("mia@acme.test"), scimKey(t, c, "acme"), c.Token("alice@acme.test")
		agent, user := c.URL+api.MountAgent, c.URL+api.MountUser
		for _, bad := range []string{"a%00", "a%ff"} {
			for _, r := range []struct {
				method, url, credential string
				status                  int
			}{
				{"GET", agent + "/snapshots/{}", key, 404}, {"DELETE", agent + "/uploads/{}", key, 404},
				{"GET", c.URL + "/scim/v2/Users/{}", scim, 404},
				{"DELETE", c.URL + "/scim/v2/Groups/{}", scim, 404},
				{"GET", agent + "/snapshots?q={}", key, 400}, {"GET", agent + "/snapshots?owner={}", key, 400},
				{"GET", agent + "/snapshots?target={}", key, 400},
				{"GET", agent + "/snapshots?target={};", key, 400}, {"GET", user + "/audit?action={}", owner, 400},
				{"GET", c.URL + "/scim/v2/Users?filter=userName%20eq%20%22{}%22", scim, 400},
				{"GET", c.URL + "/scim/v2/Users?filter=userName%20eq%20%22%5Cu0000%22", scim, 400},
				{"GET", c.URL + "/auth/device?user_code={}", "", 400},
				{"GET", c.URL + "/auth/device?user_code=%E2%82&user_code=%AC", "", 400},
			} {
				at := strings.ReplaceAll(r.url, "{}", bad)
				if res, data := send(t, r.method, at, "", r.credential); res.StatusCode != r.status {
					t.Errorf("%s %s: %d %s, want %d", r.method, at, res.StatusCode, data, r.status)
				}
			}
			form, err := url.ParseQuery("grant_type=refresh_token&client_id=snapcli&refresh_token=" + bad)
			must(t, err)
			res, err := http.PostForm(c.URL+"/auth/token", form)
			must(t, err)
			data, err := io.ReadAll(res.Body)
			must(t, errors.Join(err, res.Body.Close()))
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(data), "NUL") {
				t.Errorf("a form: %d %s", res.StatusCode, data)
			}
		}
		for _, r := range []struct{ method, url, body, credential string }{
			{"POST", user + "/keys", `{"kind": "cak", "name": "a\u0000"}`, owner},
			{"POST", agent + "/snapshots", `{"target": "a\u0000", "name": "n", "size": 1}`, key},
			{"POST", c.URL + "/scim/v2/Users", `{"userName": "a\u0000"}`, scim},
			{"POST", c.URL + "/scim/v2/Groups", `{"displayName": "a\u0000"}`, scim},
			{"PATCH", c.URL + "/scim/v2/Groups/none",
				`{"Operations": [{"op": "remove", "path": "members[value eq \"\\u0000\"]"}]}`, scim},
		} {
			res, data := send(t, r.method, r.url, r.body, r.credential)
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(data), "NUL") {
				t.Errorf("%s %s %s: %d %s", r.method, r.url, r.body, res.StatusCode, data)
			}
		}
	})
}
