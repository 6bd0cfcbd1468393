package local

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// openText opens an agent whose config.yaml has this text and whose
// environment is env.
func openText(t *testing.T, text string, env map[string]string) (*Agent, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if text != "" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Open(Options{ConfigFile: path, DataDir: filepath.Join(dir, "data"),
		Env: func(name string) string { return env[name] }})
}

const sampleConfig = `# our cloud
cloud:
  url: https://cloud.example   # the one in Europe
  api_key: ""

targets:
  # the shop
  shop:
    source: postgres://user@host/shop
    destination: postgres://user@localhost/shop_dev
    sanitize: {rules: ./shop.rules.yaml}
  my.db: # has a dot
    source: sqlite:///tmp/my.db

# where backups go
storage_profiles:
  backups: {url: "s3://bucket/prefix"}
`

// SPEC 2.6: cloud.url and cloud.api_key, from the file or the environment.
func TestConfigFileThenEnvironment(t *testing.T) {
	t.Parallel()
	a, err := openText(t, sampleConfig, map[string]string{
		"SNAPCLI_CLOUD__API_KEY":                "cak_x",
		"SNAPCLI_TARGETS__SHOP__JOBS":           "3",
		"SNAPCLI_TARGETS__MY_DB__SANITIZE__SQL": "m.sql",
		"SNAPCLI_TARGETS__MY_DB__SCHEDULE":      "17 3 * * *",
		"SNAPCLI_CLOUD__PLAIN_STORAGE":          "true",
		"SNAPCLI_POSTGRES_TOOLS":                "/opt/pg16/bin,tools",
	})
	if err != nil {
		t.Fatal(err)
	}
	c := a.Config()
	if c.Cloud.URL != "https://cloud.example" || c.Cloud.APIKey != "cak_x" || !c.Cloud.PlainStorage {
		t.Errorf("cloud = %+v", c.Cloud)
	}
	if shop := c.Targets["shop"]; shop.Jobs != 3 || shop.Name != "shop" || shop.Sanitize.Rules != "./shop.rules.yaml" {
		t.Errorf("shop = %+v", shop)
	}
	if db := c.Targets["my.db"]; db.Sanitize.SQL != "m.sql" || db.Schedule != "17 3 * * *" {
		t.Errorf("my.db = %+v", db)
	}
	if got, want := a.postgresTools(), []string{"/opt/pg16/bin",
		filepath.Join(filepath.Dir(a.ConfigPath()), "tools")}; !slices.Equal(got, want) {
		t.Errorf("PostgreSQL's programs are looked for in %q, want %q", got, want)
	}
	for key, want := range map[string]string{"cloud.api_key": "environment", "cloud.url": "file",
		"cloud.none":        "default",
		"targets.shop.jobs": "environment"} {
		if got := a.Origin(key); got != want {
			t.Errorf("Origin(%s) = %s, want %s", key, got, want)
		}
	}
}

func TestVariableWithOneUnderscore(t *testing.T) {
	t.Parallel()
	for meant, name := range map[string]string{
		"SNAPCLI_CLOUD_URL":           "SNAPCLI_CLOUD__URL",
		"SNAPCLI_CLOUD_API_KEY":       "SNAPCLI_CLOUD__API_KEY",
		"SNAPCLI_TARGETS_SHOP_SOURCE": "SNAPCLI_TARGETS__SHOP__SOURCE",
	} {
		_, err := openText(t, sampleConfig, map[string]string{meant: "x", name: "https://cloud.example"})
		var said *snap.Error
		if !errors.As(err, &said) || said.Code != snap.CodeUsage || !strings.Contains(said.Detail, meant) ||
			!strings.Contains(said.Hint, name) {
			t.Errorf("%s: %v", meant, err)
		}
	}
}

// A variable with a value of the wrong kind is refused, and the hint names its setting.
func TestVariableOfTheWrongKind(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"SNAPCLI_TARGETS__SHOP__JOBS":            "jobs",
		"SNAPCLI_TARGETS__SHOP__SUBSET__ROWS":    "subset.rows",
		"SNAPCLI_TARGETS__SHOP__SANITIZE__PROVE": "sanitize.prove",
		"SNAPCLI_TARGETS__SHOP__CHECKS":          "checks",
		"SNAPCLI_CLOUD__PLAIN_STORAGE":           "cloud.plain_storage",
	} {
		_, err := openText(t, sampleConfig, map[string]string{name: "maybe"})
		var e *snap.Error
		if snap.CodeOf(err) != snap.CodeUsage || !errors.As(err, &e) || !strings.Contains(e.Hint, key) {
			t.Errorf("%s: got %v, without a hint about %s", name, err, key)
		}
	}
}

func TestMissingConfigIsEmpty(t *testing.T) {
	t.Parallel()
	a, err := openText(t, "", nil)
	if err != nil || len(a.Targets()) != 0 || a.Config().Cloud.URL != "" {
		t.Fatalf("%+v, %v", a, err)
	}
}

func TestBadConfigNamesThePlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"unknown key": {"cloud:\n  url: x\n  urll: y\n", ":3:3: "},
		"wrong type":  {"targets:\n  shop:\n    jobs: many\n", ":3:11: "},
		"not yaml":    {"cloud: [\n", "config.yaml:1:"},
		"bad target":  {"targets:\n  a/b: {source: x}\n", "is not a valid target name"},
		"duplicate":   {"cloud: {}\ncloud: {}\n", ":2:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openText(t, c.text, nil)
			if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want usage with %q", err, c.want)
			}
		})
	}
}

// If programs add targets at the same time, none of the targets is lost.
func TestEditingAtOnce(t *testing.T) {
	t.Parallel()
	path, none := filepath.Join(t.TempDir(), "new", "config.yaml"), func(string) string { return "" }
	const programs = 12
	var all sync.WaitGroup
	for n := range programs {
		f, err := openConfig(path, none)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := f.editTarget(fmt.Sprintf("shop%d", n), func(*Target) (*Target, error) {
				return &Target{Source: "sqlite:///tmp/shop.db"}, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f, err := openConfig(path, none)
	if err != nil || len(f.config.Targets) != programs {
		t.Errorf("%d targets of %d, %v", len(f.config.Targets), programs, err)
	}
}

func TestEditingKeepsComments(t *testing.T) {
	t.Parallel()
	a, err := openText(t, sampleConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.AddTarget(Target{Name: "Größe 東京", Source: "sqlite:///tmp/a b.db", Jobs: 2}); err != nil {
		t.Fatal(err)
	}
	if err := a.AddTarget(Target{Name: "shop", Source: "mysql://u@h/shop"}); err != nil {
		t.Fatal(err)
	}
	if err := a.RemoveTarget("my.db"); err != nil {
		t.Fatal(err)
	}
	got, err := a.Target("Größe 東京")
	if err != nil || got.Jobs != 2 || got.Source != "sqlite:///tmp/a b.db" {
		t.Errorf("%+v, %v", got, err)
	}
	text, err := os.ReadFile(a.ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# our cloud\n", "# the one in Europe\n", "  # the shop\n",
		"\n# where backups go\nstorage_profiles:\n", "    source: mysql://u@h/shop\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the edited file lost %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "my.db") {
		t.Errorf("my.db is still there:\n%s", text)
	}
}

// Flaws of connections are in the order of the configuration, and each names the setting in the file.
func TestFlawsOfWays(t *testing.T) {
	t.Parallel()
	a, err := openText(t, "targets:\n  shop:\n    source: postgres://host/shop\n    password_command: [a b]\n"+
		"    destination_via: ssh://gate\n    scratch_password_command: [a b]\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, f := range a.Flaws() {
		keys = append(keys, strings.TrimPrefix(f.Key, "targets.shop."))
	}
	want := []string{"password_command", "destination_via", "scratch_password_command", "scratch_password_command"}
	if !slices.Equal(keys, want) {
		t.Errorf("%q instead of %q", keys, want)
	}
}

// The path of a password command can have spaces, and is relative to the configuration file.
func TestPasswordCommandWithSpaces(t *testing.T) {
	t.Parallel()
	a, err := openText(t, "targets: {shop: {source: postgres://host/shop, password_command: [./print it]}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	if found := a.Flaws(); len(found) != 1 {
		t.Errorf("without the program: %+v", found)
	}
	program := filepath.Join(filepath.Dir(a.ConfigPath()), "print it")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if found := a.Flaws(); len(found) > 0 {
		t.Errorf("with the program: %+v", found)
	}
	if words, err := a.passwordCommand([]string{"./print it"}); err != nil || !slices.Equal(words, []string{program}) {
		t.Errorf("%q, %v", words, err)
	}
}

func TestAddTargetToAnyFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"none": "", "only comment": "# hello\n", "no end of line": "cloud: {url: https://x}",
		"empty map": "targets: {}\ncloud: {}\n",
		"null":      "targets:\ncloud: {}\n", "last": "cloud: {}\ntargets:\n    a: {source: sqlite:///a}\n",
		"document mark": "---\ncloud: {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := openText(t, text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.AddTarget(Target{Name: "shop", Source: "sqlite:///x.db"}); err != nil {
				t.Fatal(err)
			}
			if got, err := a.Target("shop"); err != nil || got.Source != "sqlite:///x.db" {
				t.Errorf("%+v, %v", got, err)
			}
			if err := a.RemoveTarget("shop"); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Target("shop"); snap.CodeOf(err) != snap.CodeNotFound {
				t.Errorf("after removal: %v", err)
			}
		})
	}
}

func TestUnknownTargetSuggestsANearOne(t *testing.T) {
	t.Parallel()
	a, err := openText(t, sampleConfig, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Target("shpo")
	var e *snap.Error
	if snap.CodeOf(err) != snap.CodeNotFound || !errors.As(err, &e) || !strings.Contains(e.Hint, `"shop"`) {
		t.Errorf("got %v, hint %q", err, e.Hint)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	env := func(name string) string { return map[string]string{"PW": "a$b"}[name] }
	if got, err := expand("x://u:${PW}@h/$d", env); err != nil || got != "x://u:a$b@h/$d" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"${NONE}", "${PW"} {
		if _, err := expand(bad, env); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("expand(%q) = %v", bad, err)
		}
	}
}

// TestExpandURL checks that a value from the environment arrives unchanged in each part of a URL,
// whatever characters it has.
func TestExpandURL(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringN(1, 20, -1).Draw(t, "value")
		env := func(string) string { return value }
		parsed := func(raw string) *url.URL {
			expanded, err := expandURL(raw, env)
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(expanded)
			if err != nil {
				t.Fatalf("%s becomes %q: %v", raw, expanded, err)
			}
			return u
		}
		u := parsed("postgres://${A}:${B}@db.example.com:5432/${C}?password=${D}&sslmode=require")
		password, _ := u.User.Password()
		for place, got := range map[string]string{"user": u.User.Username(), "password": password,
			"path": strings.TrimPrefix(u.Path, "/"), "query": u.Query().Get("password")} {
			if got != value {
				t.Errorf("the %s is %q, want %q", place, got, value)
			}
		}
		if u.Host != "db.example.com:5432" || u.Query().Get("sslmode") != "require" || u.Fragment != "" {
			t.Errorf("the value changed another part of the URL: %s", u)
		}
	})
	env := func(string) string { return "postgres://u:p%40ss@h:5432/d" }
	if got, err := expandURL("${DATABASE_URL}", env); err != nil || got != env("") {
		t.Errorf("a whole URL becomes %q, %v", got, err)
	}
	host := func(string) string { return "db:5432" }
	if got, err := expandURL("postgres://u@${HOST}/d", host); err != nil || got != "postgres://u@db:5432/d" {
		t.Errorf("a host becomes %q, %v", got, err)
	}
	file := func(string) string { return "/data/100%#?.db" }
	if got, err := expandURL("sqlite:${FILE}", file); err != nil || got != "sqlite:/data/100%25%23%3F.db" {
		t.Errorf("a file becomes %q, %v", got, err)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://u:secret@h/d":         "postgres://u:xxxxx@h/d",
		"postgres://u@h/d?password=s&a=b": "postgres://u@h/d?a=b&password=xxxxx",
		"sqlite:///tmp/x.db":              "sqlite:///tmp/x.db",
		"postgres://u:se%cret@h/d":        "postgres://...",
		"postgres://u:x${PW}@h/d":         "postgres://...",
		"postgres://u:12#34@h/d":          "postgres://...",
		"postgres://u:12?34@h/d":          "postgres://...",
		"postgres://u:12/34@h/d":          "postgres://...",
		"postgres://h/d?user=a@b":         "postgres://h/d?user=a@b",
		"postgres://u@h/d?b=1&a=%zz":      "postgres://u@h/d?b=1",
		"${URL}":                          "${URL}",
		"postgres:u:secret@h/d":           "postgres://...",
		"u:secret@h/d":                    "u://...",
		"secret%zz":                       "...",
		"sqlite:data/x.db":                "sqlite:data/x.db",

		"postgres://u:${PW}@${HOST}:${PORT}/d?b=1&a=2&password=${PW}": "" +
			"postgres://u:${PW}@${HOST}:${PORT}/d?b=1&a=2&password=${PW}",
	} {
		if got := Redact(raw); got != want {
			t.Errorf("Redact(%q) = %q, want %q", raw, got, want)
		}
	}
}

// Some people keep their settings in a repository and use symbolic links to them. A configuration
// file that is a link stays a link, and the linked file keeps its mode.
func TestConfigBehindALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "kept", "snapcli.yaml")
	if err := os.Mkdir(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, []byte("# mine\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kept, path); err != nil {
		t.Fatal(err)
	}
	a, err := Open(Options{ConfigFile: path, DataDir: dir, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.AddTarget(Target{Name: "shop", Source: "sqlite:///shop.db"}); err != nil {
		t.Fatal(err)
	}
	if link, err := os.Readlink(path); err != nil || link != kept {
		t.Errorf("the link is %q, %v", link, err)
	}
	info, err := os.Stat(kept)
	text, _ := os.ReadFile(kept)
	if err != nil || info.Mode().Perm() != 0o640 || !strings.HasPrefix(string(text), "# mine\n") ||
		!strings.Contains(string(text), "sqlite:///shop.db") {
		t.Errorf("%v, %v: %s", info, err, text)
	}
}

// TestAbsoluteURL: only the path of a SQLite file becomes absolute.
func TestAbsoluteURL(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		"sqlite:shop.db":          "sqlite://" + here + "/shop.db",
		"sqlite://a b.db?mode=ro": "sqlite://" + here + "/a b.db?mode=ro",
		"SQLITE3:../x.db":         "SQLITE3://" + filepath.Dir(here) + "/x.db",
		"sqlite:///shop.db":       "sqlite:///shop.db",
		"sqlite:":                 "sqlite:",
		"postgres://h/shop":       "postgres://h/shop",
	} {
		if got, err := absoluteURL(raw); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", raw, got, err, want)
		}
	}
}

// TestChangeTarget: a change of a target writes only what it changes, and no value from the
// environment.
func TestChangeTarget(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "targets:\n  shop:\n    source: sqlite:///a.db\n  other:\n    source: sqlite:///o.db\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"SNAPCLI_TARGETS__SHOP__SOURCE": "postgres://me:secret@h/x",
		"SNAPCLI_TARGETS__SHOP__DESTINATION": "postgres://me:secret@h/y"}
	a, err := Open(Options{ConfigFile: path, DataDir: t.TempDir(), Env: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	shop, err := a.Target("shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.UseRules(shop, "shop.rules.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := a.ChangeTarget("shop", func(t *Target) { t.Jobs = 3 }); err != nil {
		t.Fatal(err)
	}
	want := "targets:\n  shop:\n    source: sqlite:///a.db\n    jobs: 3\n    sanitize:\n" +
		"      rules: shop.rules.yaml\n  other:\n    source: sqlite:///o.db\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the file is %q, %v", got, err)
	}
	if shop, err = a.Target("shop"); err != nil || shop.Source != "postgres://me:secret@h/x" || shop.Jobs != 3 {
		t.Errorf("%+v, %v", shop, err)
	}
}

// A pull does not replace a target that another process added in the meantime.
func TestPullKeepsATargetThatWasAddedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	other, err := Open(Options{ConfigFile: s.ConfigPath(), DataDir: s.data, Env: s.env})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.AddTarget(Target{Name: "new", Source: "sqlite:///a.db"}); err != nil {
		t.Fatal(err)
	}
	var r PullResult
	if err := s.ensureTarget(&r, "new"); err != nil || r.CreatedTarget {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Target("new"); got.Source == "" {
		t.Error("the pull erased the target's source")
	}
}
