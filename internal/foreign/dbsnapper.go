package foreign

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"snap"
)

// DBSnapper reads a dbsnapper.yml. home is the user's home directory, which replaces ~ in paths.
func DBSnapper(file string, text []byte, home string) (Found, error) {
	root, err := parse(file, text)
	if err != nil {
		return Found{}, err
	}
	r := &dbsnapper{home: home, folder: filepath.Join(home, ".dbsnapper")}
	if dir := root.value("working_directory"); dir != "" {
		r.folder = r.path(dir)
	}
	targets := root.get("targets")
	if targets == nil && root.get("storage_profiles") == nil {
		return Found{}, snap.Usage(file+" is not a dbsnapper.yml: it has neither targets nor storage_profiles",
			"give the path of the other tool's configuration")
	}
	for _, p := range root.get("storage_profiles").allFields() {
		r.profile(p)
	}
	for _, t := range targets.allFields() {
		r.target(t)
	}
	for name, why := range map[string]string{
		"authtoken":  "belongs to another service: sign in with `snapcli login`",
		"secret_key": "is not needed: secrets come from the environment, as ${NAME}",
		"docker":     "is not needed: the database's own programs on this machine are used",
		"override":   "has no equivalent: change the target instead",
		"defaults":   "has no equivalent: give each target a destination",
		"sso":        "is configured in the service: people sign in with `snapcli login`",
		"env":        "is not needed",
		"debug":      "is the flag --debug of snapcli",
		"trace":      "is the flag --debug of snapcli",
	} {
		if t := root.get(name); t != nil {
			r.left(t, "%s", why)
		}
	}
	r.leftUnread(root)
	return r.Found, nil
}

type dbsnapper struct {
	Found
	home, folder string
}

func (r *dbsnapper) path(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(r.home, rest)
	}
	return p
}

// profile converts a bucket. Credentials are not part of a storage profile.
func (r *dbsnapper) profile(t *tree) {
	for _, key := range []string{"access_key", "secret_key", "awscli_profile", "access_key_id", "secret_access_key"} {
		if c := t.get(key); c != nil {
			r.left(c, "credentials are taken from the environment, as S3 tools do: AWS_ACCESS_KEY_ID and "+
				"AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
		}
	}
	provider, bucket := strings.ToLower(t.value("provider")), t.value("bucket")
	endpoint, account := t.value("endpoint"), t.value("account_id")
	if endpoint == "" && provider == "r2" && account != "" {
		endpoint = "https://" + account + ".r2.cloudflarestorage.com"
	}
	switch {
	case bucket == "":
		r.left(t, "has no bucket")
		return
	case provider == "r2" && endpoint == "":
		r.left(t, "has no endpoint: add the storage profile with "+
			"s3://%s?endpoint=https://ACCOUNT.r2.cloudflarestorage.com", bucket)
		return
	case provider != "" && provider != "s3" && provider != "r2" && endpoint == "":
		r.left(t, "has an unknown provider: %s", provider)
		return
	}
	r.Profiles = append(r.Profiles, Profile{t.name, s3URL(bucket, t.value("prefix"), endpoint, t.value("region"))})
}

func s3URL(bucket, prefix, endpoint, region string) string {
	u := url.URL{Scheme: "s3", Host: bucket, Path: "/" + strings.Trim(prefix, "/")}
	q := url.Values{}
	for key, value := range map[string]string{"endpoint": endpoint, "region": region} {
		if value != "" {
			q.Set(key, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// target converts a target.
func (r *dbsnapper) target(t *tree) {
	name, err := snap.CleanTarget(t.name)
	if err != nil {
		r.left(t, "is not a valid target name")
		return
	}
	from := t
	if s := t.get("snapshot"); s != nil { // since version 2
		from = s
	}
	out := Target{Name: name, Source: r.url(name, "source", from.get("src_url")),
		Destination: r.url(name, "destination", from.get("dst_url"))}
	if shown := t.get("name"); shown != nil && shown.text != t.name {
		r.left(shown, "snapcli allows one name for a target: %s", name)
	}
	if c := from.get("schema_config"); c != nil {
		r.left(c, "is the setting `schemas` of a target, or a flag: snapcli build %s --schema NAME",
			snap.ShellWord(name))
	}
	r.sanitize(&out, t.get("sanitize"), t)
	for _, at := range []*tree{t, from} {
		for _, key := range []string{"storage_profile", "storage_profile_name"} {
			if p := at.get(key); p != nil {
				r.left(p, "is a flag in snapcli: snapcli push %s --profile %s", snap.ShellWord(name),
					snap.ShellWord(p.text))
			}
		}
	}
	for _, key := range []string{"share", "sso_groups"} {
		if s := t.get(key); s != nil {
			r.left(s, "share pushed snapshots with `snapcli cloud snapshots share ID --group GROUP`, or share "+
				"every new one with `snapcli cloud channels add`")
		}
	}
	r.subset(out, t.get("subset"))
	if out.Source == "" && out.Destination == "" {
		r.left(t, "has no database that can be imported")
		return
	}
	r.Targets = append(r.Targets, out)
}

var (
	encrypted = regexp.MustCompile(`\$aes\$[0-9a-fA-F]+`)
	templated = regexp.MustCompile(`\{\{[^}]*\benv\b[^A-Za-z_}]*([A-Za-z_][A-Za-z0-9_]*)[^}]*\}\}`)
)

// url converts a database URL. A part that is encrypted with the other tool's key becomes a
// reference to an environment variable.
func (r *dbsnapper) url(target, role string, t *tree) string {
	if t == nil || t.text == "" {
		return ""
	}
	raw := templated.ReplaceAllString(t.text, "$${$1}")
	if encrypted.MatchString(raw) {
		variable := variableOf(target, role)
		raw = encrypted.ReplaceAllLiteralString(raw, "${"+variable+"}")
		r.left(t, "a secret in it is encrypted with the other tool's key: set the environment variable %s to the "+
			"decrypted secret", variable)
	}
	if p, err := url.Parse(raw); err == nil && p.User != nil {
		if password, has := p.User.Password(); has && password != "" && !strings.Contains(raw, "${") {
			r.left(t, "its password is in the configuration: replace it with ${NAME}")
		}
	}
	return raw
}

// variableOf returns the name of the environment variable for a target's secret.
func variableOf(target, role string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToUpper(target+"_"+role+"_PASSWORD"))
}

// sanitize converts the SQL that masks. s is the sanitize section of the target, or nil.
func (r *dbsnapper) sanitize(out *Target, s, target *tree) {
	file := s.get("query_file")
	if file == nil {
		file = target.get("query_file") // before version 2
	}
	if file != nil && file.text != "" {
		out.SQLFile = r.path(file.text)
		if !filepath.IsAbs(out.SQLFile) {
			out.SQLFile = filepath.Join(r.folder, out.SQLFile)
		}
	}
	if q := s.get("override_query"); q != nil {
		text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(q.text))
		if err != nil {
			r.left(q, "is not a base64-encoded query")
		} else {
			out.SQL, out.SQLFile = string(text), ""
		}
	}
	for _, key := range []string{"src_url", "dst_url"} {
		if u := s.get(key); u != nil {
			r.left(u, "snapcli masks a copy that it makes on the server of the target's destination")
		}
	}
}

// subset reports the snapcli commands that choose the same rows.
func (r *dbsnapper) subset(t Target, s *tree) {
	target, tableName := snap.ShellWord(t.Name), func(table string) string { return table }
	// In MySQL and MariaDB, the schema is the database.
	if strings.HasPrefix(t.Source, "mysql") || strings.HasPrefix(t.Source, "mariadb") {
		tableName = func(table string) string { return table[strings.LastIndex(table, ".")+1:] }
	}
	for _, key := range []string{"src_url", "dst_url"} {
		if u := s.get(key); u != nil {
			r.left(u, "in snapcli a subset is a snapshot of the target's source, and is loaded like any other")
		}
	}
	for _, t := range s.get("subset_tables").list() {
		table := tableName(t.value("table"))
		if where := t.value("where"); where != "" {
			r.left(t, "is a flag in snapcli: snapcli build %s --where %s", target, snap.ShellWord(table+"="+where))
		} else {
			r.left(t, "is a flag in snapcli, for the whole database: snapcli build %s --percent %s", target,
				snap.ShellWord(t.value("percent")))
		}
	}
	for _, t := range s.get("excluded_tables").list() {
		r.left(t, "is a flag in snapcli: snapcli build %s --where %s", target,
			snap.ShellWord(tableName(t.text)+"=false"))
	}
	for _, t := range s.get("copy_tables").list() {
		r.left(t, "is a flag in snapcli: snapcli build %s --where %s", target,
			snap.ShellWord(tableName(t.text)+"=true"))
	}
	for _, key := range []string{"added_relationships", "excluded_relationships"} {
		if t := s.get(key); t != nil {
			r.left(t, "has no equivalent: snapcli follows the database's own foreign keys")
		}
	}
}

// String formats the setting for display.
func (l Left) String() string { return fmt.Sprintf("line %d: %s: %s", l.Line, l.What, l.Why) }
