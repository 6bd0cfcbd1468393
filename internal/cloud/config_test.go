package cloud_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloud"
)

func pushOf(target string, content []byte) api.PushRequest {
	sum := sha256.Sum256(content)
	return api.PushRequest{Target: target, Name: target + "-x", Type: snap.TypeSnapshot, Engine: snap.SQLite,
		Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapcloud.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A relative data_dir in the file starts at the file's folder, wherever a command is run. One in
// the environment starts at the working directory.
func TestDataDir(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "data", "data_dir: ./state": "state",
		"data_dir: ../state": "../state"} {
		path := configFile(t, text+"\n")
		c, err := cloud.LoadConfig(path, nil)
		must(t, err)
		if want := filepath.Join(filepath.Dir(path), want); c.DataDir != want {
			t.Errorf("%q: %s, want %s", text, c.DataDir, want)
		}
	}
	for _, path := range []string{"", configFile(t, "data_dir: /var/lib/snapcloud\n")} {
		c, err := cloud.LoadConfig(path, []string{"SNAPCLOUD_DATA_DIR=here"})
		if must(t, err); c.DataDir != "here" {
			t.Errorf("from the environment: %s", c.DataDir)
		}
	}
}

// DESIGN 5: the shape of the configuration, from file and environment.
func TestLoadConfig(t *testing.T) {
	t.Parallel()
	path := configFile(t, `
listen: 127.0.0.1:9999
data_dir: /var/lib/snapcloud
organizations:
  - slug: acme
    name: Acme Inc
    sign_in:
      type: oidc
      issuer: https://idp.example
      client_id: snap
      client_secret: ${ACME_OIDC_SECRET}
      groups_claim: groups
      roles: {owner: [root@acme.example], admin: [admins]}
    policy: {share_types: [sanitized], max_cross_org_expiry: 30d, device_login: false}
  - slug: globex
    sign_in: {type: local}
    users:
      - {email: gail@globex.test, password: secret, role: owner, groups: [eng]}
      - {email: gary@globex.test, password: secret}
`)
	c, err := cloud.LoadConfig(path, []string{"ACME_OIDC_SECRET=s3cret", "SNAPCLOUD_DATABASE__URL=postgres://db/snap",
		"SNAPCLOUD_DATA_DIR=/data"})
	must(t, err)
	acme, globex := c.Organizations[0], c.Organizations[1]
	for name, ok := range map[string]bool{
		"file":          c.Listen == "127.0.0.1:9999",
		"default":       c.PublicURL == "http://127.0.0.1:9999" && c.Auth.ClientID == "snapcli",
		"environment":   c.Database.URL == "postgres://db/snap",
		"both":          c.DataDir == "/data",
		"secret":        acme.SignIn.ClientSecret == "s3cret",
		"roles":         acme.SignIn.Roles[snap.RoleAdmin][0] == "admins",
		"no sample":     c.Tracing.Sample == nil,
		"policy":        acme.Policy.DeviceLogin != nil && !*acme.Policy.DeviceLogin,
		"default name":  globex.Name == "globex",
		"default role":  globex.Users[1].Role == snap.RoleMember,
		"users' groups": globex.Users[0].Groups[0] == "eng",
	} {
		if !ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A variable can hold a list, an empty one changes nothing, and one with a single underscore in
// place of a dot is refused. Variables that Kubernetes sets for a service named snapcloud are
// accepted.
func TestConfigFromTheEnvironment(t *testing.T) {
	t.Parallel()
	path := configFile(t, "{trust_proxies: [10.0.0.0/8], log: {level: debug}}\n")
	c, err := cloud.LoadConfig(path, []string{"SNAPCLOUD_LOG__LEVEL=", "SNAPCLOUD_LOG_FORMAT=",
		"SNAPCLOUD_TRUST_PROXIES=10.1.0.0/16, 10.2.0.0/16", "SNAPCLOUD_PORT=tcp://10.1.2.3:80"})
	if must(t, err); c.Log.Level != "debug" || !slices.Equal(c.TrustProxies, []string{"10.1.0.0/16", "10.2.0.0/16"}) {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]string{"SNAPCLOUD_DATABASE_URL": "SNAPCLOUD_DATABASE__URL",
		"SNAPCLOUD_LIMITS_QUEUE_WAIT": "SNAPCLOUD_LIMITS__QUEUE_WAIT"} {
		_, err := cloud.LoadConfig("", []string{name + "=x"})
		if refused := (*snap.Error)(nil); !errors.As(err, &refused) || refused.Code != snap.CodeUsage ||
			!strings.Contains(refused.Detail, name+" has no effect") || !strings.Contains(refused.Hint, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An invalid configuration is refused, and the error names the setting.
func TestInvalidConfigNamesTheMistake(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"unknown key": {"listn: x", "listn"},
		"no YAML":     {"a: [", ""},
		"bad slug":    {"organizations: [{slug: Acme!, sign_in: {type: local}}]", "slug"},
		"twice": {"organizations: [{slug: a, sign_in: {type: local}}, {slug: a, sign_in: {type: local}}]",
			"twice"},
		"no sign-in": {"organizations: [{slug: a}]", "sign_in"},
		"oidc half":  {"organizations: [{slug: a, sign_in: {type: oidc}}]", "issuer"},
		"bad role": {"organizations: [{slug: a, sign_in: {type: local}, users: [{email: x, password: y, role: " +
			"king}]}]", "role"},
		"bad expiry": {"organizations: [{slug: a, sign_in: {type: local}, policy: {max_cross_org_expiry: soon}}]",
			"max_cross_org_expiry"},
		"bad type": {"organizations: [{slug: a, sign_in: {type: local}, policy: {share_types: [raw]}}]",
			"share_types"},
		"no environment": {"data_dir: ${NOT_THERE}", "NOT_THERE"},
		"bad public_url": {"public_url: ftp://x", "public_url"},
		"path": {"public_url: https://snap.example/snap",
			`public_url "https://snap.example/snap" has a path, and the service runs only at the root of a host`},
		"bad listen": {"listen: nowhere", "listen"},
		"local, not local": {"public_url: https://snap.example\norganizations: [{slug: a, sign_in: {type: local}}]",
			"allow_local"},
		"negative size":        {"limits: {max_snapshot_size: -1}", "limits.max_snapshot_size -1"},
		"negative limit":       {"limits: {bytes_per_user: -20}", "limits.bytes_per_user -20"},
		"negative reserve":     {"limits: {disk_reserve: -256}", "limits.disk_reserve -256"},
		"address, no network":  {"trust_proxies: [10.0.0.1]", `trust_proxies: "10.0.0.1" is not a network`},
		"negative wait":        {"limits: {queue_wait: -1s}", "limits.queue_wait"},
		"negative connections": {"database: {connections: -1}", "database.connections -1"},
		"negative sample":      {"tracing: {sample: -0.1}", "tracing.sample -0.1"},
		"large sample":         {"tracing: {sample: 1.5}", "tracing.sample 1.5"},
		"no number":            {"tracing: {sample: .nan}", "tracing.sample NaN"},
		"negative archive":     {"audit: {archive_after: -40d}", "audit.archive_after"},
		"zero archive":         {"audit: {archive_after: 0}", "audit.archive_after"},
		"negative prune":       {"accounts: {prune_after: -40d}", "accounts.prune_after"},
		"zero recheck": {"organizations: [{slug: a, sign_in: {type: local, recheck: 0s}}]",
			"sign_in recheck"},
		"negative login": {"organizations: [{slug: a, sign_in: {type: local}, policy: {max_login: -1h}}]",
			"policy max_login"},
		"negative key age": {"organizations: [{slug: a, sign_in: {type: local}, policy: {max_key_age: -1d}}]",
			"policy max_key_age"},
	} {
		_, err := cloud.LoadConfig(configFile(t, tt.text), nil)
		if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := cloud.LoadConfig(filepath.Join(t.TempDir(), "none.yaml"), nil); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("a file that is not there: %v", err)
	}
}
