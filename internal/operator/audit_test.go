package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/servertest"
	"snap/internal/transfer"
)

// A service is restored from a backup. One command with an export of the later log ends the share,
// the key and the user that ended after the backup. Wrong files change nothing.
func TestReplayRevocationsByCommand(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := t.Context()
	config := configure(t, servertest.Address(t))
	key := func(email string) string {
		_, secret, _ := run(t, config, "key", "create", "--org", "acme", "--kind", "user", "--user", email)
		return strings.TrimSpace(secret)
	}
	at := func(config, secret string) *api.Client {
		c, err := api.New(api.Options{BaseURL: "http://" + addressOf(t, config), Mount: api.MountAgent,
			Token: api.StaticToken(secret)})
		must(t, err)
		return c
	}
	aliceKey, vicKey := key("alice@acme.test"), key("vic@acme.test")
	backups, export := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "acme.jsonl")

	stop := serve(t, config)
	alice := at(config, aliceKey)
	content := []byte("the bytes of shop")
	file := filepath.Join(t.TempDir(), "shop")
	must(t, os.WriteFile(file, content, 0o600))
	sum := sha256.Sum256(content)
	sn, err := transfer.Upload(ctx, alice, file, api.PushRequest{Target: "shop", Name: "shop-1",
		Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])},
		transfer.Options{HTTP: http.DefaultClient, Jobs: 1})
	must(t, err)
	_, err = alice.Share(ctx, sn.ID)
	must(t, err)
	if _, err := at(config, vicKey).Snapshot(ctx, sn.ID); err != nil {
		t.Errorf("vic, before: %v", err)
	}
	if code, _, stderr := run(t, config, "backup", "--to", backups); code != 0 {
		t.Fatalf("backup: %d, %s", code, stderr)
	}
	must(t, alice.Unshare(ctx, sn.ID))
	stop()
	_, listed, _ := run(t, config, "key", "list", "--org", "acme", "--json")
	id := regexp.MustCompile(`"id": "([^"]+)"[^}]*alice@acme.test`).FindStringSubmatch(listed)
	if id == nil {
		t.Fatalf("the keys are %s", listed)
	}
	for _, args := range []string{"key revoke --org acme " + id[1], "user disable --org acme vic@acme.test"} {
		if code, _, stderr := run(t, config, strings.Fields(args)...); code != 0 {
			t.Fatalf("%s: %d, %s", args, code, stderr)
		}
	}
	newKey := key("alice@acme.test")
	stop = serve(t, config)
	page, err := at(config, newKey).AuditRecords(ctx, 1, api.MaxAuditRecords)
	must(t, err)
	stop()
	must(t, os.WriteFile(export, []byte(strings.Join(page.Items, "\n")+"\n"), 0o600))

	restored := elsewhere(t, config)
	if code, _, stderr := run(t, restored, "restore", "--from", backups); code != 0 {
		t.Fatalf("restore: %d, %s", code, stderr)
	}
	altered := export + ".altered"
	text := strings.Join(page.Items, "\n")
	last := strings.LastIndex(text, "shop") // lines that the backup already has are not checked
	must(t, os.WriteFile(altered, []byte(text[:last]+"shoq"+text[last+len("shop"):]), 0o600))
	for _, try := range []struct {
		code int
		says string
		args string
	}{
		{snap.ExitUsage, "needs --revocations", "audit replay --org acme"},
		{snap.ExitUsage, "cannot read the export: open none: ", "audit replay --org acme --revocations none"},
		{snap.ExitNotFound, "no organization", "audit replay --org initech --revocations " + export},
		{snap.ExitConflict, "line", "audit replay --org acme --revocations " + altered},
		{0, "ended 1 share, disabled 1 user, revoked 1 key", "audit replay --org acme --revocations " + export},
		{0, `"keys": []`, "audit replay --json --org acme --revocations " + export},
	} {
		code, stdout, stderr := run(t, restored, strings.Fields(try.args)...)
		if code != try.code || !strings.Contains(stdout+stderr, try.says) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %d and %q", try.args, code, stdout, stderr, try.code, try.says)
		}
	}
	stop = serve(t, restored)
	defer stop()
	for name, secret := range map[string]string{"the revoked key": aliceKey, "the disabled user": vicKey} {
		if _, err := at(restored, secret).Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
