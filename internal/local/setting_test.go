package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap"
)

// A setting is written at its position in the file. Every other line of the file, including
// comments, stays unchanged.
func TestSetKeepsTheFile(t *testing.T) {
	t.Parallel()
	const key = "cak_abcdefghijklmnopqrstuvwxyz0123456789AB"
	for name, c := range map[string]struct{ text, key, value, want string }{
		"an empty file": {"", "cloud.url", "https://c.example", "cloud:\n  url: https://c.example\n"},
		"a value": {"# a\ncloud:\n  url: https://old.example   # b\n", "cloud.url", "https://c.example",
			"# a\ncloud:\n  url: https://c.example   # b\n"},
		"a quoted value": {"cloud: # a\n  url: \"https://old.example\" # b\n", "cloud.url",
			"https://c.example", "cloud: # a\n  url: https://c.example # b\n"},
		"no value yet": {"cloud:\n  url: # the one in Europe\n  api_key: \"\"\n", "cloud.url",
			"https://c.example", "cloud:\n  url: https://c.example # the one in Europe\n  api_key: \"\"\n"},
		"a new target in no group": {"targets:\n# end\n", "targets.shop.source", "sqlite:///s.db",
			"targets:\n  shop:\n    source: sqlite:///s.db\n# end\n"},
		"an empty value": {"cloud:\n  url: \"\"  # first\n", "cloud.url", "https://c.example",
			"cloud:\n  url: https://c.example  # first\n"},
		"a further setting": {"cloud:\n    # the one in Europe\n    url: https://c.example\n\n# the " +
			"rest\ntargets: {}\n", "cloud.api_key", key,
			"cloud:\n    # the one in Europe\n    url: https://c.example\n    api_key: " + key +
				"\n\n# the rest\ntargets: {}\n"},
		"a group without settings": {"cloud: {} # c\ntargets: {}\n", "cloud.url", "https://c.example",
			"cloud:  # c\n  url: https://c.example\ntargets: {}\n"},
		"a new target": {"targets: {}\n# end\n", "targets.shop.source", "sqlite:///s.db",
			"targets: \n  shop:\n    source: sqlite:///s.db\n# end\n"},
		"a target's setting": {sampleConfig, "targets.shop.sanitize.sql", "m.sql",
			strings.Replace(sampleConfig, "rules.yaml}", "rules.yaml, sql: m.sql}", 1)},
		"a name with a dot": {sampleConfig, "targets.my.db.jobs", "4",
			strings.Replace(sampleConfig, "my.db\n", "my.db\n    jobs: 4\n", 1)},
		"inside braces": {sampleConfig, "storage_profiles.backups.url", "s3://other/${X}",
			strings.Replace(sampleConfig, "s3://bucket/prefix", "s3://other/${X}", 1)},
		"a group within a group": {sampleConfig, "targets.shop.subset.where.public.customers", "id < 9",
			strings.Replace(sampleConfig, "rules.yaml}\n",
				"rules.yaml}\n    subset:\n      where:\n        public.customers: id < 9\n", 1)},
		"true": {"cloud: {}\n", "trust.own_organization", "false",
			"cloud: {}\ntrust:\n  own_organization: false\n"},
		"a list": {"postgres_tools:\n  - /a\n  - /b\n# end\n", "postgres_tools", "/c, /d",
			"postgres_tools: [/c, /d]\n# end\n"},
		"a statement with commas": {"targets: {shop: {destination: postgres://host/dev}}\n", "targets.shop.grants",
			"GRANT SELECT ON a,b TO c",
			"targets: {shop: {destination: postgres://host/dev, grants: [\"GRANT SELECT ON a,b TO c\"]}}\n"},
		"several statements": {"targets: {shop: {destination: postgres://host/dev}}\n", "targets.shop.grants",
			"GRANT SELECT ON a,b TO c;GRANT d TO e",
			"targets: {shop: {destination: postgres://host/dev, " +
				"grants: [\"GRANT SELECT ON a,b TO c\", GRANT d TO e]}}\n"},
		"a list in brackets": {"postgres_tools: [\"/a\"] # mine\n", "postgres_tools", "/b",
			"postgres_tools: [/b] # mine\n"},
		"no line end": {"cloud: {url: https://old.example}", "cloud.url", "https://c.example",
			"cloud: {url: https://c.example}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := openText(t, c.text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(filepath.Dir(a.ConfigPath()), "m.sql"), []byte("select 1"),
				0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Set(c.key, c.value); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(a.ConfigPath())
			if err != nil || string(got) != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
			if s, err := a.Setting(c.key); err != nil || s.Origin != "file" ||
				s.Value != strings.ReplaceAll(c.value, ", ", ",") {
				t.Errorf("read back: %+v, %v", s, err)
			}
		})
	}
}

// Set changes nothing if a setting is invalid, or if the file cannot be edited
// without losing something.
func TestSetRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, key, value, want string }{
		"no such key":    {sampleConfig, "cloud.urll", "x", "there is no setting"},
		"a group":        {sampleConfig, "targets.shop", "x", "is a group of settings"},
		"no such field":  {sampleConfig, "targets.shop.color", "x", "there is no setting"},
		"no URL":         {sampleConfig, "cloud.url", "cloud.example", "cloud.url: "},
		"no database":    {sampleConfig, "targets.shop.source", "oracle://x/y", "oracle"},
		"no number":      {sampleConfig, "targets.shop.jobs", "many", "needs a whole number"},
		"too many rows":  {sampleConfig, "targets.shop.subset.rows", "9223372036854775808", "needs a whole number"},
		"less than zero": {sampleConfig, "targets.shop.jobs", "-1", "less than zero"},
		"no flag":        {sampleConfig, "targets.shop.production", "maybe", "needs true or false"},
		"a line break":   {sampleConfig, "cloud.url", "https://c.example\nx: y", "line break"},
		"a lost comment": {"identities:\n  - a.txt # old\n  - b.txt\n", "identities", "c.txt",
			"snapcli cannot edit"},
		"several lines": {"cloud:\n  url: >-\n    https://old.example\n", "cloud.url", "https://c.example",
			"snapcli cannot edit"},
		"an alias": {"cloud:\n  url: &u https://old.example\n  ca_file: *u\n", "cloud.ca_file", "x",
			"snapcli cannot edit"},
		"a bad new name": {sampleConfig, "targets.a/b.source", "sqlite:///s.db", "is not a valid target name"},
		"an empty key":   {sampleConfig, "", "x", "there is no setting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := openText(t, c.text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Set(c.key, c.value); snap.CodeOf(err) != snap.CodeUsage ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if got, err := os.ReadFile(a.ConfigPath()); err != nil || string(got) != c.text {
				t.Errorf("the file changed: %v\n%s", err, got)
			}
		})
	}
}

// An empty value removes a setting of any kind, and the setting can then be set again.
func TestSetNothing(t *testing.T) {
	t.Parallel()
	const text = "trust:\n  own_organization: false\npostgres_tools: [/a, /b]\ntargets:\n  shop:\n" +
		"    source: sqlite:///s.db\n    jobs: 4 # cores\n    production: true\n    subset: {percent: 5.5}\n" +
		"  few: {subset: {rows: 500}}\n"
	for key, again := range map[string]string{"trust.own_organization": "false", "postgres_tools": "/a,/b",
		"targets.shop.source": "sqlite:///s.db", "targets.shop.jobs": "4", "targets.shop.production": "true",
		"targets.shop.subset.percent": "5.5", "targets.few.subset.rows": "500"} {
		a, err := openText(t, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []Setting{{Key: key, Origin: "default"}, {key, again, "file"}} {
			if _, err := a.Set(key, want.Value); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if s, err := a.Setting(key); err != nil || s.Origin != want.Origin || want.Value != "" && s != want {
				t.Errorf("%+v, %v", s, err)
			}
		}
		if got, err := os.ReadFile(a.ConfigPath()); err != nil || string(got) != text {
			t.Errorf("%s: %v\n%s", key, err, got)
		}
	}
}

// The environment overrides the file, and Set reports that.
func TestSetUnderAVariable(t *testing.T) {
	t.Parallel()
	a, err := openText(t, sampleConfig, map[string]string{"SNAPCLI_CLOUD__URL": "https://env.example"})
	if err != nil {
		t.Fatal(err)
	}
	if by, err := a.Set("cloud.url", "https://c.example"); err != nil || by != "SNAPCLI_CLOUD__URL" {
		t.Errorf("overridden by %q, %v", by, err)
	}
	if s, err := a.Setting("cloud.url"); err != nil ||
		s != (Setting{"cloud.url", "https://env.example", "environment"}) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := a.Setting("targets.shop.jobs"); err != nil || s.Origin != "default" {
		t.Errorf("%+v, %v", s, err)
	}
	if keys := SettingKeys(); !slices.Contains(keys, "targets.NAME.subset.where.NAME") || !slices.Contains(keys,
		"trust.own_organization") || slices.Contains(keys, "targets.NAME.-") {
		t.Errorf("keys %v", keys)
	}
}

// A setting may need another one that only the environment sets.
func TestSetWithTheRestInVariables(t *testing.T) {
	t.Parallel()
	a, err := openText(t, "targets:\n  shop:\n    sanitize: {sql: m.sql}\n", map[string]string{
		"SNAPCLI_TARGETS__SHOP__SOURCE": "sqlite:///s.db", "SNAPCLI_TARGETS__SHOP__JOBS": "4"})
	if err != nil {
		t.Fatal(err)
	}
	masks := filepath.Join(filepath.Dir(a.ConfigPath()), "m.sql")
	if err := os.WriteFile(masks, []byte("SELECT 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Set("targets.shop.schedule", "17 3 * * *"); err != nil {
		t.Error(err)
	}
	if _, err := a.Set("targets.shop.jobs", "-1"); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("a variable hid a bad value: %v", err)
	}
}
