package cloud_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/certificate"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

func certify(t *testing.T, key certificate.Private, content string) json.RawMessage {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	text, err := certificate.Make(key, certificate.Subject{Name: "shop-1",
		Digest: certificate.Digest{SHA256: hex.EncodeToString(sum[:])}},
		certificate.Sanitization{Masked: 3, Tool: "test", Made: time.Unix(0, 0).UTC()})
	must(t, err)
	return text
}

// register registers a key with the organization of a caller.
func register(t *testing.T, by *api.Client, key certificate.Private) api.CertificateKey {
	t.Helper()
	k, err := by.AddCertificateKey(t.Context(), api.CertificateKeyRequest{Public: key.PublicKey().String(), Name: "ci"})
	must(t, err)
	return k
}

// certified starts a service whose first organization shares only certified snapshots.
func certified(t *testing.T) (*cloudtest.Cloud, *api.Client) {
	t.Helper()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
		config.Organizations[0].Policy.ShareRequires = snap.RequireCertificate
	}})
	return c, c.As("alice@acme.test")
}

// everyShare tries each way to share a snapshot and returns the errors.
func everyShare(t *testing.T, by *api.Client, id string) map[string]error {
	t.Helper()
	ctx := t.Context()
	_, wide := by.Share(ctx, id)
	_, group := by.ShareGroup(ctx, id, "eng")
	_, org := by.ShareOrg(ctx, id, "globex", nil)
	_, many := by.ShareWith(ctx, id, api.SharesRequest{GroupIDs: []string{"dba"}}, true)
	return map[string]error{"org-wide": wide, "group": group, "organization": org, "several": many}
}

// With the policy `share_requires: certificate`, every way to share a snapshot is refused until the
// key of its certificate is registered, and after that key is revoked.
func TestSharesNeedACertificate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, alice := certified(t)
	key := certificate.New()
	original := c.Push(alice, "shop", []byte("raw"))
	bare := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("bare"))
	signed := c.PushCertified(alice, "shop", snap.TypeSanitized, []byte("signed"), certify(t, key, "signed"))
	refused := func(when, id, why string) {
		t.Helper()
		for way, err := range everyShare(t, alice, id) {
			if snap.CodeOf(err) != snap.CodePolicy || !strings.Contains(err.Error(), "share_requires") ||
				!strings.Contains(err.Error(), why) {
				t.Errorf("%s, %s: %v", when, way, err)
			}
		}
	}
	refused("an original", original.ID, "this snapshot's certificate: none")
	refused("no certificate", bare.ID, "this snapshot's certificate: none")
	refused("an unknown key", signed.ID, "is not registered")
	other := certificate.New()
	register(t, c.As("gail@globex.test"), other)
	foreign := c.PushCertified(alice, "shop", snap.TypeSanitized, []byte("foreign"), certify(t, other, "foreign"))
	refused("another organization's key", foreign.ID, "is not registered")

	k := register(t, alice, key)
	for way, err := range everyShare(t, alice, signed.ID) {
		if err != nil {
			t.Errorf("a valid certificate, %s: %v", way, err)
		}
	}
	must(t, alice.RevokeCertificateKey(ctx, k.ID))
	refused("a revoked key", signed.ID, "is revoked")
	if _, err := c.As("gus@acme.test").Snapshot(ctx, signed.ID); err != nil {
		t.Errorf("revoking a key ended a share: %v", err)
	}
	log, err := alice.Audit(ctx, api.AuditOptions{Snapshot: signed.ID, Action: snap.AuditShareRefused})
	must(t, err)
	if len(log.Items) != 8 { // with an unknown and with a revoked key
		t.Errorf("%d lines about refused shares", len(log.Items))
	}
	me, err := alice.Me(ctx)
	must(t, err)
	if me.Policy.ShareRequires != snap.RequireCertificate {
		t.Errorf("the policy is %+v", me.Policy)
	}
}

// Without the policy, certificates change nothing.
func TestSharesWithoutThePolicy(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	for way, err := range everyShare(t, alice, c.PushAs(alice, "shop", snap.TypeSanitized, []byte("bare")).ID) {
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// Channels follow the policy: they share a certified snapshot and record why they do not share
// another.
func TestChannelsNeedACertificate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, alice := certified(t)
	key := certificate.New()
	register(t, alice, key)
	if _, err := alice.AddChannel(ctx, api.ChannelRequest{Target: "shop", Type: snap.TypeSnapshot}, true); snap.CodeOf(
		err) != snap.CodePolicy {
		t.Errorf("a channel of originals: %v", err)
	}
	_, err := alice.AddChannel(ctx, api.ChannelRequest{Target: "shop", Type: snap.TypeSanitized}, false)
	must(t, err)
	bare := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("bare"))
	signed := c.PushCertified(alice, "shop", snap.TypeSanitized, []byte("signed"), certify(t, key, "signed"))
	page, err := c.As("gus@acme.test").Snapshots(ctx, api.ListOptions{})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].ID != signed.ID {
		t.Errorf("the channel shares %+v", page.Items)
	}
	log, err := alice.Audit(ctx, api.AuditOptions{Snapshot: bare.ID, Action: snap.AuditShareRefused})
	must(t, err)
	if len(log.Items) != 1 || log.Items[0].Detail.Code != snap.CodePolicy {
		t.Errorf("refused shares %+v", log.Items)
	}
}

// altered returns a certificate with another statement and the old signature.
func altered(t *testing.T, text json.RawMessage) json.RawMessage {
	t.Helper()
	var e map[string]any
	must(t, json.Unmarshal(text, &e))
	payload, err := base64.StdEncoding.DecodeString(e["payload"].(string))
	must(t, err)
	e["payload"] = base64.StdEncoding.EncodeToString(bytes.Replace(payload, []byte(`"masked":3`), []byte(`"masked":9`),
		1))
	out, err := json.Marshal(e)
	must(t, err)
	return out
}

// Certificates that do not belong to the push are refused when they arrive, and nothing is stored.
func TestHostileCertificatesAreRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, alice := certified(t)
	key := certificate.New()
	register(t, alice, key)
	good := certify(t, key, "content")
	changed := func(old, text string) string { return strings.Replace(string(good), old, text, 1) }
	for name, bad := range map[string]struct {
		kind snap.Type
		text string
		says string
	}{
		"another snapshot's": {snap.TypeSanitized, string(certify(t, key, "other")), "belongs to another file"},
		"an altered one":     {snap.TypeSanitized, string(altered(t, good)), "was altered"},
		"a huge one": {snap.TypeSanitized, changed(`{`, `{"x":"`+strings.Repeat("x", certificate.MaxSize)+`",`),
			"cannot be read"},
		"an original's":    {snap.TypeSnapshot, string(good), "not sanitized"},
		"no envelope":      {snap.TypeSanitized, `"text"`, "cannot be read"},
		"an empty object":  {snap.TypeSanitized, `{}`, "cannot be read"},
		"no signature":     {snap.TypeSanitized, changed(`"signatures":[`, `"signatures":[],"x":[`), "cannot be read"},
		"many signatures":  {snap.TypeSanitized, changed(`"signatures":[`, `"signatures":[{},`), "cannot be read"},
		"an unnamed key":   {snap.TypeSanitized, changed(`"keyid":"`, `"keyid":"x`), "cannot be read"},
		"text with a zero": {snap.TypeSanitized, changed(`"keyid":"`, "\"keyid\":\"\\u0000"), "NUL character"},
		"not UTF-8":        {snap.TypeSanitized, changed(`{`, "{\"\xff\":1,"), "cannot be read"},
	} {
		sum := sha256.Sum256([]byte("content"))
		text := fmt.Sprintf(`{"target":"shop","name":"shop-1","type":%q,"engine":"sqlite","size":7,"sha256":"%x",`+
			`"certificate":%s}`, bad.kind, sum, bad.text)
		res, data := send(t, "POST", c.URL+api.MountAgent+"/snapshots", text, c.Key("alice@acme.test"))
		if p := problemIn(t, res, data); p.Code != snap.CodeInvalid || !strings.Contains(p.Detail, bad.says) {
			t.Errorf("%s: %d %s", name, res.StatusCode, data)
		}
	}
	begun, err := alice.Uploads(ctx)
	must(t, err)
	if len(begun) != 0 {
		t.Errorf("pushes were begun: %+v", begun)
	}
}

// An altered certificate that names a key which is registered later is not valid either.
func TestAlteredCertificateOfALaterKey(t *testing.T) {
	t.Parallel()
	c, alice := certified(t)
	key := certificate.New()
	sn := c.PushCertified(alice, "shop", snap.TypeSanitized, []byte("x"), altered(t, certify(t, key, "x")))
	register(t, alice, key)
	if _, err := alice.Share(t.Context(), sn.ID); snap.CodeOf(err) != snap.CodePolicy ||
		!strings.Contains(err.Error(), "it was altered") {
		t.Errorf("shared: %v", err)
	}
	one, err := alice.Snapshot(t.Context(), sn.ID)
	must(t, err)
	if one.Certificate == nil || one.Certificate.State != snap.CertificateInvalid || one.Certificate.Key != "" {
		t.Errorf("the state is %+v", one.Certificate)
	}
}

// The record and the card of a snapshot show the state of its certificate, and a pull returns the
// pushed certificate, even for another organization.
func TestCertificatesAreShownAndPulled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, alice := certified(t)
	key := certificate.New()
	text := certify(t, key, "x")
	sn := c.PushCertified(alice, "shop", snap.TypeSanitized, []byte("x"), text)
	state := func(by *api.Client) api.CertificateState {
		t.Helper()
		one, err := by.Snapshot(ctx, sn.ID)
		must(t, err)
		all, err := by.Card(ctx, sn.ID, "", 1)
		must(t, err)
		if one.Certificate == nil || all.Snapshot.Certificate == nil || *one.Certificate != *all.Snapshot.Certificate {
			t.Fatalf("the record shows %+v, the card %+v", one.Certificate, all.Snapshot.Certificate)
		}
		return *one.Certificate
	}
	id := key.PublicKey().ID()
	if got, want := state(alice), (api.CertificateState{State: snap.CertificateUnknown, Key: id}); got != want {
		t.Errorf("before: %+v", got)
	}
	register(t, alice, key)
	want := api.CertificateState{State: snap.CertificateValid, Key: id, KeyName: "ci"}
	if got := state(alice); got != want {
		t.Errorf("registered: %+v", got)
	}
	_, err := alice.ShareOrg(ctx, sn.ID, "globex", nil)
	must(t, err)
	gail := c.As("gail@globex.test")
	if got, want := state(gail), (api.CertificateState{State: snap.CertificateValid, Key: id}); got != want {
		t.Errorf("the recipient: %+v", got)
	}
	for name, by := range map[string]*api.Client{"owner": alice, "recipient": gail} {
		pull, err := by.Pull(ctx, sn.ID)
		must(t, err)
		if !bytes.Equal(pull.Certificate, text) {
			t.Errorf("the %s pulls the certificate %s", name, pull.Certificate)
		}
	}
	must(t, alice.RevokeCertificateKey(ctx, id))
	if got := state(alice); got.State != snap.CertificateRevoked || got.KeyName != "ci" {
		t.Errorf("revoked: %+v", got)
	}
	bare, err := alice.Pull(ctx, c.PushAs(alice, "shop", snap.TypeSanitized, []byte("y")).ID)
	must(t, err)
	if bare.Certificate != nil {
		t.Errorf("a snapshot without a certificate pulls %s", bare.Certificate)
	}
}

// Repeating a push with a certificate adds the certificate, once.
func TestCertificateOfARepeatedPush(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, alice := certified(t)
	first, second := certify(t, certificate.New(), "x"), certify(t, certificate.New(), "x")
	sum := sha256.Sum256([]byte("x"))
	r := api.PushRequest{Target: "shop", Name: "shop-1", Type: snap.TypeSanitized, Engine: snap.SQLite, Size: 1,
		SHA256: hex.EncodeToString(sum[:])}
	plan, err := alice.Push(ctx, r)
	must(t, err)
	for _, text := range []json.RawMessage{first, second} { // while it is begun
		r.Certificate = text
		again, err := alice.Push(ctx, r)
		must(t, err)
		if again.ID != plan.ID {
			t.Fatalf("the push became %s", again.ID)
		}
	}
	c.PutPart(alice, plan.ID, 1, []byte("x"))
	_, err = alice.Complete(ctx, plan.ID)
	must(t, err)
	pulled := func(id string) []byte {
		pull, err := alice.Pull(ctx, id)
		must(t, err)
		return pull.Certificate
	}
	if got := pulled(plan.ID); !bytes.Equal(got, first) {
		t.Errorf("begun: %s", got)
	}
	done := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("y"))
	r = api.PushRequest{Target: "shop", Name: done.Name, Type: done.Type, Engine: done.Engine, Size: done.Size,
		SHA256: done.SHA256, Certificate: certify(t, certificate.New(), "y")}
	again, err := alice.Push(ctx, r)
	must(t, err)
	if again.ID != done.ID || !again.Exists || !bytes.Equal(pulled(done.ID), r.Certificate) {
		t.Errorf("complete: %+v, %s", again, pulled(done.ID))
	}
}

// Owners and admins register and revoke keys; everybody in the organization lists them, and nobody
// else.
func TestCertificateKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, mia, gail := c.As("alice@acme.test"), c.As("mia@acme.test"), c.As("gail@globex.test")
	key := certificate.New()
	k := register(t, alice, key)
	if k.ID != key.PublicKey().ID() || k.Name != "ci" || k.RevokedAt != nil {
		t.Errorf("registered %+v", k)
	}
	again := api.CertificateKeyRequest{Public: k.Public}
	if _, err := alice.AddCertificateKey(ctx, again); snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("registered twice: %v", err)
	}
	if _, err := mia.AddCertificateKey(ctx, again); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a member registers: %v", err)
	}
	if err := mia.RevokeCertificateKey(ctx, k.ID); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a member revokes: %v", err)
	}
	if err := gail.RevokeCertificateKey(ctx, k.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("another organization revokes: %v", err)
	}
	for _, bad := range []string{"", "snapkey-", key.String(), k.Public + "A", strings.Repeat("x", 200)} {
		if _, err := alice.AddCertificateKey(ctx, api.CertificateKeyRequest{Public: bad}); snap.CodeOf(err) !=
			snap.CodeInvalid {
			t.Errorf("the key %.20q: %v", bad, err)
		}
	}
	if list, err := mia.CertificateKeys(ctx); err != nil || len(list) != 1 || list[0].ID != k.ID {
		t.Errorf("a member lists %+v, %v", list, err)
	}
	if list, err := gail.CertificateKeys(ctx); err != nil || len(list) != 0 {
		t.Errorf("another organization lists %+v, %v", list, err)
	}
	for range 2 { // the second time changes nothing
		must(t, alice.RevokeCertificateKey(ctx, k.ID))
	}
	list, err := alice.CertificateKeys(ctx)
	must(t, err)
	if len(list) != 1 || list[0].RevokedAt == nil {
		t.Errorf("after the end: %+v", list)
	}
	if _, err := alice.AddCertificateKey(ctx, again); snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("a revoked key is registered again: %v", err)
	}
	log, err := alice.Audit(ctx, api.AuditOptions{Action: snap.AuditCertificateKeyRevoked})
	must(t, err)
	if len(log.Items) != 1 || log.Items[0].Detail.PublicKey != k.Public || log.Items[0].Detail.Name != "ci" {
		t.Errorf("audit lines %+v", log.Items)
	}
}

// An unknown field is refused in the words by which a newer client recognizes an older service.
func TestUnknownFieldsAreNamed(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	res, data := send(t, "POST", c.URL+api.MountAgent+"/snapshots", strings.Replace(pushBody, "{", `{"later":{},`, 1),
		c.Key("alice@acme.test"))
	p := problemIn(t, res, data)
	want := snap.FieldError{Field: "later", Detail: "unexpected property"}
	if p.Code != snap.CodeInvalid || len(p.Errors) != 1 || p.Errors[0] != want {
		t.Errorf("%d %s", res.StatusCode, data)
	}
}
