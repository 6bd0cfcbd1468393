package cloud_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// A response with a secret does not reach the database when the request carries
// an Idempotency-Key. The request is still carried out only once, or its
// response is a new link.
func TestNoSecretIsKeptForAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := cloudtest.Start(t, cloudtest.Options{DataDir: dir,
		Config: func(o *cloud.Config) { o.Webhooks.AllowPrivate = true }})
	alice := c.As("alice@acme.test")
	sn := c.Push(alice, "shop", []byte("rows"))
	plan, err := alice.Push(t.Context(), api.PushRequest{
		Target: "shop", Name: "shop-2", Type: "snapshot", Engine: "sqlite", Size: 4, SHA256: strings.Repeat("ab", 32),
	})
	must(t, err)
	token := "Bearer " + c.Token("alice@acme.test")
	post := func(path, body string) (int, string) {
		req, err := http.NewRequest(http.MethodPost, c.URL+api.MountUser+path, strings.NewReader(body))
		must(t, err)
		req.Header.Set("Authorization", token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "the-key-for-"+path)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		must(t, err)
		return res.StatusCode, string(answer)
	}
	secret := regexp.MustCompile(`"(?:secret|url)":"((?:cak_|whsec_|http://[^"]*/blobs/)[^"]+)"`)
	answers := map[string]struct {
		body  string
		again int
	}{
		"/keys":                            {`{"name":"ci","kind":"cak"}`, http.StatusConflict},
		"/webhooks":                        {`{"url":"http://127.0.0.1:1/hook"}`, http.StatusConflict},
		"/snapshots/" + sn.ID + "/pull":    {"", http.StatusOK},
		"/snapshots/" + plan.ID + "/parts": {`{"parts":[{"number":1,"crc64nvme":"AAAAAAAAAAA="}]}`, http.StatusOK},
	}
	for _, path := range slices.Sorted(maps.Keys(answers)) { // /keys comes first: every search looks for its key too
		tc := answers[path]
		status, first := post(path, tc.body)
		found := secret.FindStringSubmatch(first)
		if status != http.StatusOK || found == nil {
			t.Fatalf("%s: %d %s", path, status, first)
		}
		status, second := post(path, tc.body)
		if status != tc.again || status == http.StatusConflict && strings.Contains(second, found[1]) {
			t.Errorf("%s again: %d %s", path, status, second)
		}
		said := found[1][len(found[1])-20:]
		if dump := read(t, dir); bytes.Contains(dump, []byte(said)) ||
			!bytes.Contains(dump, []byte("the-key-for-/keys")) {
			t.Errorf("%s: the secret %s is in the database, or the search does not work", path, said)
		}
	}
	keys, err := c.SignedIn("alice@acme.test").Keys(t.Context(), api.KeyFilter{})
	must(t, err)
	made := 0
	for _, k := range keys {
		if k.Name == "ci" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("two requests with one Idempotency-Key made %d keys", made)
	}
}

// read returns everything in the files of the database.
func read(t *testing.T, dir string) (all []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "snapcloud.db*"))
	must(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		all = append(all, data...)
	}
	return all
}
