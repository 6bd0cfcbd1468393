package cloud_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// T10: the service does not start with a key that cannot open the signing keys, or with an invalid
// key.
func TestKeyEncryptionKey(t *testing.T) {
	t.Parallel()
	key := func(with byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{with}, 32)) }
	dir := t.TempDir()
	start := func(key string) error {
		config, err := cloud.LoadConfig(configFile(t, "data_dir: "+dir+"\nauth: {key_encryption_key: '${KEY}'}\n"),
			[]string{"KEY=" + key})
		if err != nil {
			return err
		}
		s, err := cloud.New(t.Context(), config, cloud.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return s.Close()
	}
	must(t, start(key(1)))
	s, err := store.Open(t.Context(), store.Options{DataDir: dir})
	must(t, err)
	sealer, err := auth.NewSealer(key(1))
	must(t, err)
	_, err = auth.NewTokens(s, "issuer", "audience", sealer, time.Now).Access(t.Context(), auth.Claims{})
	must(t, err)
	must(t, cloud.ApplyDirectory(t.Context(), s, // as `snapcloud key create` does
		cloud.Config{PublicURL: "https://snap.test", Auth: cloud.Auth{KeyEncryptionKey: key(1)}}))
	must(t, s.Close())
	must(t, start(key(1)))
	for bad, want := range map[string]string{
		key(2):   "auth.key_encryption_key is not the key that encrypted the stored secrets",
		"":       "auth.key_encryption_key is not set",
		"secret": "auth.key_encryption_key must be 32 bytes as base64",
	} {
		if err := start(bad); snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// T10: without the key, a service over PostgreSQL says so once at its start.
func TestUnencryptedSigningKeysAreReported(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{"": 1, base64.StdEncoding.EncodeToString(make([]byte, 32)): 0} {
		database := cloudtest.Postgres(t)
		config, err := cloud.LoadConfig("", []string{
			"SNAPCLOUD_DATABASE__URL=" + database, "SNAPCLOUD_DATA_DIR=" +
				t.TempDir(), "SNAPCLOUD_AUTH__KEY_ENCRYPTION_KEY=" +
				key,
		})
		must(t, err)
		var log bytes.Buffer
		s, err := cloud.New(t.Context(), config, cloud.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		must(t, s.Close())
		if got := strings.Count(log.String(), "auth.key_encryption_key"); got != want {
			t.Errorf("%d warnings, want %d:\n%s", got, want, log.String())
		}
	}
}

// T10: with the key, secrets of webhooks are encrypted. Secrets that were stored before are still
// valid, and a rotation replaces them. Without the right key, nothing is sent.
func TestWebhookSecretsAreSealed(t *testing.T) {
	t.Parallel()
	ctx, dir, r := t.Context(), t.TempDir(), newReceiver(t)
	start := func(key string) *cloudtest.Cloud {
		return cloudtest.Start(t, cloudtest.Options{DataDir: dir, Config: func(o *cloud.Config) {
			allowPrivate(o)
			o.Auth.KeyEncryptionKey = key
		}})
	}
	first := start("")
	plain, err := first.As("alice@acme.test").AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: pushed})
	must(t, err)
	must(t, first.Service.Close())

	c := start(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	alice := c.As("alice@acme.test")
	signed := func(id string, want ...string) {
		t.Helper()
		if result, err := alice.TestWebhook(ctx, id); err != nil || !result.OK {
			t.Fatalf("test: %+v, %v", result, err)
		}
		last := r.got[len(r.got)-1]
		signatures := strings.Fields(last.Header.Get("Webhook-Signature"))
		if len(signatures) != len(want) {
			t.Fatalf("signed with %q, want %d", signatures, len(want))
		}
		for i, secret := range want {
			last.Header.Set("Webhook-Signature", signatures[i])
			checkSignature(t, secret, last, r.bodies[len(r.got)-1])
		}
	}
	signed(plain.ID, plain.Secret)
	rotated, err := alice.RotateWebhook(ctx, plain.ID, api.RotateRequest{})
	must(t, err)
	signed(plain.ID, rotated.Secret, plain.Secret)
	made, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: pushed})
	must(t, err)
	signed(made.ID, made.Secret)
	org, err := c.Store.OrgBySlug(ctx, "acme")
	must(t, err)
	acme, err := c.Store.CallerOfOrg(ctx, org.ID)
	must(t, err)
	stored, err := c.Store.Webhooks(ctx, acme)
	must(t, err)
	for i, secret := range []string{rotated.Secret, made.Secret} {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		must(t, err)
		if bytes.Contains(stored[i].Secrets[0], secret) {
			t.Errorf("the secret of webhook %d is stored unencrypted", stored[i].ID)
		}
	}
	_, err = c.Store.RotateSecret(ctx, acme, stored[1].ID, bytes.Repeat([]byte{1}, 61), time.Now())
	must(t, err)
	if result, err := alice.TestWebhook(ctx, made.ID); err != nil || result.OK ||
		!strings.Contains(result.Status, "cannot be decrypted") {
		t.Errorf("encrypted with another key: %+v, %v", result, err)
	}
}

// T10: with the key, a person who reads the database cannot sign a download URL.
func TestDownloadURLsNeedTheKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{
		"": http.StatusOK, base64.StdEncoding.EncodeToString(make([]byte, 32)): http.StatusForbidden,
	} {
		c := cloudtest.Start(t, cloudtest.Options{Config: func(o *cloud.Config) { o.Auth.KeyEncryptionKey = key }})
		mia := c.As("mia@acme.test")
		pulled, err := mia.Pull(t.Context(), c.Push(mia, "shop", []byte("x")).ID)
		must(t, err)
		if res, _ := get(t, pulled.URL); res.StatusCode != http.StatusOK {
			t.Errorf("key %q: the service's URL: %s", key, res.Status)
		}
		secret, err := c.Store.Secret(t.Context(), "urls", 32)
		must(t, err)
		service, token, _ := strings.Cut(pulled.URL, "/blobs/")
		ticket, _, _ := strings.Cut(token, ".")
		content, err := base64.RawURLEncoding.DecodeString(ticket)
		must(t, err)
		forged := blob.SignToken(secret, "download", json.RawMessage(content))
		if res, _ := get(t, service+"/blobs/"+forged); res.StatusCode != want {
			t.Errorf("key %q: a URL that is signed with the stored secret: %s, want %d", key, res.Status, want)
		}
	}
}
