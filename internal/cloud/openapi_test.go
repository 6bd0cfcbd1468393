package cloud_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"pgregory.net/rapid"

	"snap"
	"snap/api"
	"snap/internal/certificate"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// documented is one operation of the OpenAPI document on the agent mount.
type documented struct {
	method, path string
	op           *huma.Operation
}

func document(t *testing.T, c *cloudtest.Cloud) (*huma.OpenAPI, []documented) {
	t.Helper()
	doc := c.Service.Described()
	var all []documented
	for path, item := range doc.Paths {
		if !strings.HasPrefix(path, api.MountAgent) {
			continue
		}
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "DELETE": item.Delete} {
			if op != nil {
				all = append(all, documented{method, path, op})
			}
		}
	}
	if len(all) < 25 {
		t.Fatalf("the document describes %d operations on the agent mount", len(all))
	}
	return doc, all
}

// fill puts a scene's values into a path. Where the route is about an upload,
// one that has begun takes the snapshot's place.
func fill(t *testing.T, s scene, path string) string {
	t.Helper()
	id, number := s.id, "0"
	switch {
	case strings.HasSuffix(path, "/parts") || strings.Contains(path, "/uploads/"), strings.HasSuffix(path, "/complete"):
		id = s.begun(t)
	case strings.Contains(path, "/channels/"):
		number = s.channel(t)
	case strings.Contains(path, "/webhooks/"):
		number = s.webhook(t)
	}
	if strings.HasSuffix(path, "/certificate-keys/{id}") {
		key, err := s.As("alice@acme.test").AddCertificateKey(t.Context(),
			api.CertificateKeyRequest{Public: certificate.New().PublicKey().String()})
		must(t, err)
		number = key.ID
	}
	if strings.Contains(path, "/access-requests/") {
		number = s.request(t, strings.HasSuffix(path, "/refuse"))
	}
	if strings.Contains(path, "/people/") {
		people, err := s.As("alice@acme.test").People(t.Context())
		must(t, err)
		number = people[0].ID
	}
	if !strings.Contains(path, "/snapshots/") && !strings.Contains(path, "/uploads/") {
		id = number
	}
	if strings.Contains(path, "/retention/{target}") {
		_, err := s.As("alice@acme.test").SetRetention(t.Context(), api.RetentionRule{Target: "kept", KeepLast: 1})
		must(t, err)
	}
	return strings.NewReplacer("{id}", id, "{groupId}", "dba", "{slug}", "globex", "{target}", "kept").Replace(path)
}

// request makes a request for access, of somebody else or of alice, and returns its ID.
func (s scene) request(t *testing.T, others bool) string {
	t.Helper()
	by, id := s.As("alice@acme.test"), snap.NewSnapshotID()
	if others {
		by, id = s.As("max@acme.test"), s.id
	}
	must(t, by.RequestAccess(t.Context(), api.AccessRequestRequest{Snapshot: id}))
	list := s.As("alice@acme.test").OwnAccessRequests
	if others {
		list = s.As("alice@acme.test").AccessRequests
	}
	found, err := list(t.Context())
	must(t, err)
	return found[0].ID
}

func (s scene) begun(t *testing.T) string {
	t.Helper()
	plan, err := s.As("alice@acme.test").Push(t.Context(), pushOf("begun", []byte(t.Name())))
	must(t, err)
	return plan.ID
}

func (s scene) channel(t *testing.T) string {
	t.Helper()
	channel, err := s.As("alice@acme.test").AddChannel(t.Context(), api.ChannelRequest{Target: "c"}, false)
	must(t, err)
	return channel.ID
}

func (s scene) webhook(t *testing.T) string {
	t.Helper()
	hook, err := s.As("alice@acme.test").AddWebhook(t.Context(), api.WebhookRequest{URL: "https://hooks.example/"})
	must(t, err)
	return hook.ID
}

// Every example in the document works, and the answers match the document.
func TestEveryExampleInTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	doc, operations := document(t, c)
	for _, d := range operations {
		if slices.Contains([]string{"complete", "delta", "received", "receipt"}, path.Base(d.path)) {
			// an example cannot send the bytes or act for the other organization; see full_test.go,
			// rules_test.go, audit_tree_test.go, delta_test.go
			continue
		}
		s := newScene(t, c)
		query := url.Values{}
		for _, p := range d.op.Parameters {
			if example := cloud.ExampleOf(doc, p.Schema); p.In == "query" && (example != nil || p.Required) {
				query.Set(p.Name, fmt.Sprint(example))
			}
		}
		if strings.HasSuffix(d.path, "/audit/access") {
			query.Set("snapshot", s.id)
		}
		text := ""
		if d.op.RequestBody != nil {
			data, err := json.Marshal(cloud.ExampleOf(doc, d.op.RequestBody.Content["application/json"].Schema))
			must(t, err)
			text = string(data)
		}
		res, data := send(t, d.method, c.URL+fill(t, s, d.path)+"?"+query.Encode(), text, c.Key("alice@acme.test"))
		checkAnswer(t, doc, d, res, data, text)
	}
}

func checkAnswer(t *testing.T, doc *huma.OpenAPI, d documented, res *http.Response, data []byte, sent string) {
	t.Helper()
	described := d.op.Responses[fmt.Sprint(res.StatusCode)]
	if res.StatusCode >= 300 || described == nil {
		t.Errorf("%s %s with %s: %d %s", d.method, d.path, sent, res.StatusCode, data)
		return
	}
	if described.Content == nil {
		return
	}
	var v any
	must(t, json.Unmarshal(data, &v))
	var result huma.ValidateResult
	huma.Validate(doc.Components.Schemas, described.Content["application/json"].Schema, huma.NewPathBuffer(nil, 0),
		huma.ModeReadFromServer, v, &result)
	for _, err := range result.Errors {
		t.Errorf("%s %s answers what it does not describe: %v in %s", d.method, d.path, err, data)
	}
}

// Input that the document does not allow is refused, and never breaks the
// service.
func TestInputThatTheDocumentDoesNotAllow(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	_, operations := document(t, c)
	s := newScene(t, c)
	key := c.Key("alice@acme.test")
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.SampledFrom(operations).Draw(rt, "operation")
		path := strings.NewReplacer("{id}", s.id, "{groupId}", "dba", "{slug}", "globex", "{target}",
			"kept").Replace(d.path)
		if d.method == http.MethodDelete && strings.HasSuffix(d.path, "/{id}") {
			path += "x" // keep the scene
		}
		query := url.Values{}
		for _, p := range d.op.Parameters {
			if p.In == "query" && rapid.Bool().Draw(rt, "set "+p.Name) {
				query.Set(p.Name,
					rapid.SampledFrom([]string{"", "-1", "\x00", "☃", "9999999999999999999", "null", "{",
						strings.Repeat("x", 500),
						"2026-13-45", "%zz"}).Draw(rt, p.Name))
			}
		}
		text := ""
		if d.op.RequestBody != nil {
			text = wrongBody(rt)
		}
		res, data := send(t, d.method, c.URL+path+"?"+query.Encode(), text, key)
		if res.StatusCode >= 500 {
			rt.Fatalf("%s %s?%s with %q: %d %s", d.method, path, query.Encode(), text, res.StatusCode, data)
		}
		if d.op.RequestBody != nil && res.StatusCode < 300 && !json.Valid([]byte(text)) {
			rt.Fatalf("%s %s took %q", d.method, path, text)
		}
		if res.StatusCode >= 400 {
			problemIn(t, res, data)
		}
	})
}

// The errors of quotas and policies are in the document, with the type that the service sends.
func TestErrorsAreDocumented(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(o *cloud.Config) {
		o.Limits.UploadsPerUser, o.Limits.BytesPerOrganization = 2, 5
		o.Organizations[0].Policy.MaxKeyAge = "30d"
	}})
	alice := c.SignedIn("alice@acme.test")
	check := func(path, id, body string, want snap.Code) {
		t.Helper()
		url := c.URL + api.MountUser + strings.Replace(path, "{id}", id, 1)
		method, op := http.MethodPost, c.Service.Described().Paths[api.MountUser+path].Post
		if op == nil {
			method, op, url = http.MethodGet, c.Service.Described().Paths[api.MountUser+path].Get, url+id
		}
		res, data := send(t, method, url, body, c.Token("alice@acme.test"))
		sent := problemIn(t, res, data)
		described := op.Responses[fmt.Sprint(res.StatusCode)]
		if described == nil {
			t.Fatalf("%s sends %s, which is not documented", path, data)
		}
		example := described.Content["application/problem+json"].Examples[string(want)]
		if sent.Code != want || example == nil || example.Value.(api.Problem).Type != sent.Type {
			t.Errorf("%s sends %s and documents %+v", path, data, example)
		}
	}
	var begun []string
	for _, content := range []string{"one", "two"} {
		plan, err := alice.Push(t.Context(), pushOf(content, []byte(content)))
		must(t, err)
		c.PutPart(alice, plan.ID, 1, []byte(content))
		begun = append(begun, plan.ID)
	}
	third, err := json.Marshal(pushOf("three", []byte("3")))
	must(t, err)
	check("/snapshots", "", string(third), snap.CodeQuota)
	_, err = alice.Complete(t.Context(), begun[0])
	must(t, err)
	check("/snapshots/{id}/complete", begun[1], "", snap.CodeQuota)
	check("/keys", "", `{"kind":"cak","name":"x"}`, snap.CodePolicy)
	check("/audit/growth", "?from=1000000", "", snap.CodeConflict)
	check("/audit/inclusion", "?line=1000000", "", snap.CodeNotFound)
	_, data := send(t, http.MethodPut, c.URL+"/blobs/parts/x", "x", "")
	var p api.Problem
	if must(t, json.Unmarshal(data, &p)); p.Type != p.Code.Type() {
		t.Errorf("a part is refused with %s", data)
	}
}

// wrongBody draws a body that the operation usually refuses.
func wrongBody(rt *rapid.T) string {
	values := []any{nil, true, -1, 1e300, "", "☃\u0000", strings.Repeat("x", 3000), []any{}, []any{nil},
		map[string]any{},
		map[string]any{"x": 1}, "2026-13-45T00:00:00Z"}
	object := map[string]any{}
	for _, name := range append([]string{"unknown"}, memberNames()...) {
		if rapid.Bool().Draw(rt, "has "+name) {
			object[name] = rapid.SampledFrom(values).Draw(rt, name)
		}
	}
	data, err := json.Marshal(rapid.SampledFrom([]any{object, object, object, values[0], values[3], values[7]}).Draw(rt,
		"body"))
	if err != nil {
		rt.Fatal(err)
	}
	return rapid.SampledFrom([]string{string(data), string(data), string(data), string(data) + "}", "{",
		"\x00"}).Draw(rt,
		"text")
}

func memberNames() []string {
	return []string{"group_id", "org_slug", "expires_at", "target", "type", "name", "engine", "size", "sha256", "parts",
		"bytes", "certificate", "public", "events", "url", "keep_last", "keep_days", "now", "dry_run"}
}

// The reference has a page for each resource with every operation of the document, its errors and
// its examples, and finds operations by words. No page is larger than 60 KB with its stylesheet.
func TestReferencePages(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	doc := c.Service.Described()
	style := 0 // bytes
	get := func(path string) string {
		res, data := send(t, http.MethodGet, c.URL+path, "", "")
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d", path, res.StatusCode)
		}
		if len(data)+style > 60_000 {
			t.Errorf("%s has %d bytes", path, len(data)+style)
		}
		return string(data)
	}
	_, rest, _ := strings.Cut(get("/docs"), `<link rel="stylesheet" href="`)
	sheet, _, _ := strings.Cut(rest, `"`)
	style = len(get(sheet))
	get("/docs") // again, now together with the stylesheet
	pages := map[string]string{}
	for _, tag := range doc.Tags {
		pages[tag.Name] = get("/docs/" + tag.Name)
	}
	for path, item := range doc.Paths {
		if strings.HasPrefix(path, api.MountAgent) {
			continue
		}
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Delete} {
			if op == nil {
				continue
			}
			id := `id="` + strings.TrimPrefix(op.OperationID, "api-v1-") + `"`
			if strings.Count(pages[op.Tags[0]], id) != 1 {
				t.Errorf("%s is not on the page of %s", op.OperationID, op.Tags[0])
			}
		}
	}
	for _, want := range []string{"curl -fsS -X POST", `&#34;group_id&#34;:&#34;eng&#34;`,
		"http.NewRequest(&#34;POST&#34;",
		"404 group_not_found", `href="#share-group"`, "$SNAP_KEY"} {
		if !strings.Contains(pages["shares"], want) {
			t.Errorf("the page of shares lacks %q", want)
		}
	}
	if text := get("/docs?q=presigned"); !strings.Contains(text, "/docs/snapshots#pull-snapshot") ||
		strings.Contains(text, "/docs/webhooks#") {
		t.Errorf("the search for presigned found %s", text)
	}
	if res, _ := send(t, http.MethodGet, c.URL+"/docs/no-such", "", ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown resource: status %d", res.StatusCode)
	}
}
