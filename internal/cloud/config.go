package cloud

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"

	"snap"
	"snap/internal/auth"
	"snap/internal/disk"
	"snap/internal/signin"
	"snap/internal/store"
)

// Config is the service's configuration. Its shape in YAML is documented in docs/configuration.md.
type Config struct {
	Listen        string         `yaml:"listen"`
	PublicURL     string         `yaml:"public_url"`
	DataDir       string         `yaml:"data_dir"`
	Database      Database       `yaml:"database"`
	Blob          Blob           `yaml:"blob"`
	Auth          Auth           `yaml:"auth"`
	Limits        Limits         `yaml:"limits"`
	Webhooks      Webhooks       `yaml:"webhooks"`
	Mail          Mail           `yaml:"mail"`
	Audit         Audit          `yaml:"audit"`
	Accounts      Accounts       `yaml:"accounts"`
	Log           Log            `yaml:"log"`
	Private       Private        `yaml:"private"`
	Tracing       Tracing        `yaml:"tracing"`
	TrustProxies  []string       `yaml:"trust_proxies"` // networks that set X-Forwarded-For
	SignInPage    string         `yaml:"sign_in_page"`  // see listsOrganizations
	AllowLocal    bool           `yaml:"allow_local"`   // for a public_url that is not loopback
	Organizations []Organization `yaml:"organizations"`
}

// Database is where the records are stored. An empty URL means SQLite in data_dir; any other URL
// begins with postgres://.
type Database struct {
	URL string `yaml:"url"`
	// Connections is the maximum for each process; 0 means the default of [store.Options].
	Connections int `yaml:"connections"`
	// TransactionPooling is set when the URL belongs to a pooler in transaction mode.
	TransactionPooling bool `yaml:"transaction_pooling"`
}

// StoreOptions returns where the service keeps its records.
func (c Config) StoreOptions() store.Options {
	return store.Options{URL: c.Database.URL, DataDir: c.DataDir, Connections: c.Database.Connections,
		TransactionPooling: c.Database.TransactionPooling}
}

// Blob is where the bytes are stored. An empty URL means a folder in data_dir; any other URL begins
// with s3://.
type Blob struct {
	URL string `yaml:"url"`
}

// Auth configures the auth service. An empty issuer means the built-in one.
type Auth struct {
	Issuer   string `yaml:"issuer"`
	ClientID string `yaml:"client_id"`
	Audience string `yaml:"audience"`
	// KeyEncryptionKey encrypts secrets in the database: the signing keys, the secrets of webhooks,
	// and the refresh tokens of identity providers. It is 32 bytes as base64, or empty, and must be
	// the same on every replica.
	KeyEncryptionKey string `yaml:"key_encryption_key"`
}

// Webhooks limits where events may be sent: to public addresses over https, unless allow_private is
// set.
type Webhooks struct {
	AllowPrivate bool `yaml:"allow_private"`
}

// Audit configures where lines and checkpoints of the audit logs are kept.
type Audit struct {
	// ArchiveAfter is the age at which lines move to the object store; empty means never.
	ArchiveAfter string `yaml:"archive_after"`
	// Checkpoints is the URL of a bucket with object lock, in which checkpoints are kept.
	Checkpoints string `yaml:"checkpoints"`
	// KeepCheckpoints is how long object lock keeps each checkpoint; empty means 400 days.
	KeepCheckpoints string `yaml:"keep_checkpoints"`
}

// minArchiveAfter exceeds the time for which webhook messages and notices are kept, because they
// refer to lines in the database.
const minArchiveAfter = 31 * 24 * time.Hour

// archiveAfter returns the age at which lines are archived; 0 means never.
func (a Audit) archiveAfter() (time.Duration, error) {
	d, err := parseSetting("audit.archive_after", a.ArchiveAfter, 0)
	if err == nil && a.ArchiveAfter != "" && d < minArchiveAfter {
		return 0, fmt.Errorf("audit.archive_after: %s is less than 31d", a.ArchiveAfter)
	}
	return d, err
}

// parseSetting parses the duration of a setting, which is byDefault if the text is empty.
func parseSetting(name, text string, byDefault time.Duration) (time.Duration, error) {
	if text == "" {
		return byDefault, nil
	}
	d, err := snap.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// Log configures logging: format text or json, level debug, info, warn or error.
type Log struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

// Private configures the operator's listener, which serves /metrics and pprof without a credential.
// An empty address disables it.
type Private struct {
	Listen string `yaml:"listen"`
}

// Tracing sends OpenTelemetry traces by OTLP over HTTP. An empty endpoint disables it. Settings
// that the OpenTelemetry specification reads from the environment, such as
// OTEL_EXPORTER_OTLP_HEADERS, are read from there.
type Tracing struct {
	Endpoint string   `yaml:"endpoint"` // such as http://collector:4318
	Sample   *float64 `yaml:"sample"`   // fraction of traces, from 0 to 1; nil means 1
}

// Organization is one organization and how its people sign in.
type Organization struct {
	Slug   string      `yaml:"slug"`
	Name   string      `yaml:"name"`
	SignIn SignIn      `yaml:"sign_in"`
	Users  []LocalUser `yaml:"users"` // for type: local only
	Policy Policy      `yaml:"policy"`
	Trust  []Trust     `yaml:"trust"`
}

// SignIn is an identity provider: type oidc, or local for trials.
type SignIn struct {
	Type         string   `yaml:"type"`
	Issuer       string   `yaml:"issuer"`
	ClientID     string   `yaml:"client_id"`
	ClientSecret string   `yaml:"client_secret"`
	Scopes       []string `yaml:"scopes"`
	Domains      []string `yaml:"domains"` // e-mail domains of the organization's people
	GroupsClaim  string   `yaml:"groups_claim"`
	// ExternalIDClaim names the claim that holds a person's external ID in SCIM.
	ExternalIDClaim string                 `yaml:"external_id_claim"`
	Roles           map[snap.Role][]string `yaml:"roles"`
	AllowPrivate    bool                   `yaml:"allow_private"`
	Recheck         string                 `yaml:"recheck"`
}

// LocalUser is a user of an organization with type: local.
type LocalUser struct {
	Email    string    `yaml:"email"`
	Name     string    `yaml:"name"`
	Password string    `yaml:"password"`
	Role     snap.Role `yaml:"role"`
	Groups   []string  `yaml:"groups"`
}

// Policy holds an organization's limits; see snap.Policy.
type Policy struct {
	ShareTypes        []snap.Type            `yaml:"share_types"`
	UnsanitizedShares snap.UnsanitizedShares `yaml:"unsanitized_shares"`
	ShareRequires     snap.ShareRequirement  `yaml:"share_requires"`
	MaxCrossOrgExpiry string                 `yaml:"max_cross_org_expiry"`
	MaxKeyAge         string                 `yaml:"max_key_age"`
	DeviceLogin       *bool                  `yaml:"device_login"`
	MaxStaleness      string                 `yaml:"max_staleness"`
	MaxLogin          string                 `yaml:"max_login"`
}

const defaultDataDir = "./data"

// LoadConfig reads the YAML file (none if path is empty), sets defaults and checks the result.
// Environment variables with the prefix SNAPCLOUD_ override the file unless they are empty:
// SNAPCLOUD_DATABASE__URL is database.url, and commas or spaces separate the items of a list.
// Errors have the code usage and say what is wrong and where.
func LoadConfig(path string, environ []string) (Config, error) {
	values := map[string]any{}
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return Config{}, snap.Usage("cannot read the configuration file: "+err.Error(), "check its path")
		}
		var strict Config
		if err := yaml.UnmarshalWithOptions(data, &strict, yaml.Strict()); err != nil {
			return Config{}, snap.Usage(disk.YAMLMistake(path, err), "compare it with docs/configuration.md")
		}
		if err := yaml.Unmarshal(data, &values); err != nil {
			return Config{}, snap.Usage(disk.YAMLMistake(path, err), "")
		}
	}
	expanded, err := expand(values, environ)
	if err != nil {
		return Config{}, err
	}
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(expanded.(map[string]any), "."), nil); err != nil {
		return Config{}, snap.Usage(err.Error(), "")
	}
	if path != "" {
		if err := k.Set("data_dir", dataDirOf(path, k.String("data_dir"))); err != nil {
			return Config{}, snap.Usage(err.Error(), "")
		}
	}
	kinds := settingKinds(reflect.TypeFor[Config](), "")
	if err := checkNames(kinds, environ); err != nil {
		return Config{}, err
	}
	err = k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "__", ".")
			switch {
			case value == "":
				return "", nil // ignored
			case kinds[key] == reflect.Slice:
				return key, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
			}
			return key, value
		},
	}), nil)
	if err != nil {
		return Config{}, snap.Usage(err.Error(), "")
	}
	var c Config
	if err := k.UnmarshalWithConf("", &c, koanf.UnmarshalConf{Tag: "yaml"}); err != nil {
		return Config{}, snap.Usage("the configuration is not valid: "+err.Error(), "")
	}
	c.fill()
	return c, c.Check()
}

const envPrefix = "SNAPCLOUD_"

// settingKinds returns the kinds of the settings in a struct type, by their keys. Every key begins
// with prefix. The settings inside a list, such as organizations, are not included.
func settingKinds(t reflect.Type, prefix string) map[string]reflect.Kind {
	kinds := map[string]reflect.Kind{}
	for field := range t.Fields() {
		key := prefix + field.Tag.Get("yaml")
		if field.Type.Kind() == reflect.Struct {
			maps.Copy(kinds, settingKinds(field.Type, key+"."))
		} else {
			kinds[key] = field.Type.Kind()
		}
	}
	return kinds
}

// checkNames refuses a variable with a single underscore in place of a dot, such as
// SNAPCLOUD_DATABASE_URL, because it would silently have no effect.
func checkNames(kinds map[string]reflect.Kind, environ []string) error {
	for key := range kinds {
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
		wrong := strings.ReplaceAll(name, "__", "_")
		if wrong != name && slices.ContainsFunc(environ, func(entry string) bool {
			set, value, _ := strings.Cut(entry, "=")
			return set == wrong && value != ""
		}) {
			return snap.Usage(fmt.Sprintf("the environment variable %s has no effect", wrong),
				"use "+name+" instead: two underscores stand for a dot")
		}
	}
	return nil
}

// dataDirOf resolves a relative or default data_dir against the folder of the configuration file.
// An operator's command therefore uses the same database as the service, whatever the working
// directory.
func dataDirOf(file, dir string) string {
	dir = cmp.Or(dir, defaultDataDir)
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(filepath.Dir(file), dir)
}

var envName = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} in every string with the value of that environment variable.
func expand(v any, environ []string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			out, err := expand(inner, environ)
			if err != nil {
				return nil, err
			}
			v[key] = out
		}
	case []any:
		for i, inner := range v {
			out, err := expand(inner, environ)
			if err != nil {
				return nil, err
			}
			v[i] = out
		}
	case string:
		return expandString(v, environ)
	}
	return v, nil
}

func expandString(text string, environ []string) (string, error) {
	var missing error
	out := envName.ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-1]
		for _, entry := range environ {
			if key, value, _ := strings.Cut(entry, "="); key == name {
				return value
			}
		}
		missing = snap.Usage("the configuration uses ${"+name+"}, which is not in the environment", "set it")
		return ""
	})
	return out, missing
}

func (c *Config) fill() {
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8080")
	c.PublicURL = strings.TrimRight(cmp.Or(c.PublicURL, "http://"+c.Listen), "/")
	c.DataDir = cmp.Or(c.DataDir, defaultDataDir)
	c.Auth.ClientID = cmp.Or(c.Auth.ClientID, "snapcli")
	c.Log.Format = cmp.Or(c.Log.Format, "text")
	c.Log.Level = cmp.Or(c.Log.Level, "info")
	for i := range c.Organizations {
		o := &c.Organizations[i]
		o.Name = cmp.Or(o.Name, o.Slug)
		for j := range o.Users {
			u := &o.Users[j]
			u.Name, u.Role = cmp.Or(u.Name, u.Email), cmp.Or(u.Role, snap.RoleMember)
		}
	}
}

// Check reports the mistakes in the configuration as one error of code usage.
func (c Config) Check() error {
	var wrong []string
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		report("public_url %q is not the URL of a host", c.PublicURL)
		u = &url.URL{}
	} else if strings.Trim(u.Path, "/") != "" {
		return snap.Usage(fmt.Sprintf("public_url %q has a path, and the service runs only at the root of a host",
			c.PublicURL),
			fmt.Sprintf("give the service a host name of its own, and set public_url: %s://%s without a path",
				u.Scheme, u.Host))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		report("listen %q is not an address like 127.0.0.1:8080", c.Listen)
	}
	wrong = append(wrong, c.checkObserving()...)
	if _, err := c.proxies(); err != nil {
		report("trust_proxies: %v", err)
	}
	if _, err := auth.NewSealer(c.Auth.KeyEncryptionKey); err != nil {
		report("auth.key_encryption_key %v", err)
	}
	if c.Database.Connections < 0 {
		report("database.connections %d is negative; use 0 for the default", c.Database.Connections)
	}
	if c.SignInPage != "" && c.SignInPage != signInList && c.SignInPage != signInAsk {
		report("sign_in_page %q is neither list nor ask", c.SignInPage)
	}
	if _, err := c.Audit.archiveAfter(); err != nil {
		report("%v", err)
	}
	if _, err := c.Audit.keepCheckpoints(); err != nil {
		report("%v", err)
	}
	wrong = append(wrong, c.Mail.check()...)
	if _, err := c.Accounts.pruneAfter(); err != nil {
		report("%v", err)
	}
	wrong = append(wrong, c.Limits.check()...)
	wrong = append(wrong, c.checkOrganizations(snap.IsLoopback(u.Hostname()))...)
	if len(wrong) == 0 {
		return nil
	}
	return snap.Usage("the configuration is not valid: "+strings.Join(wrong, "; "),
		"compare it with docs/configuration.md")
}

func (c Config) checkOrganizations(loopback bool) (wrong []string) {
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	slugs := map[string]bool{}
	for i, o := range c.Organizations {
		at := fmt.Sprintf("organizations[%d] (%s)", i, o.Slug)
		if !snap.ValidSlug(o.Slug) {
			report("%s: slug must be 1 to 63 lower-case letters, digits and hyphens, without a hyphen at either end",
				at)
		}
		if slugs[o.Slug] {
			report("%s: the slug is used twice", at)
		}
		slugs[o.Slug] = true
		for _, problem := range o.check() {
			report("%s: %s", at, problem)
		}
		if o.SignIn.Type == "local" && !c.AllowLocal && !loopback {
			report("%s: sign_in type local is for trials on this machine, but public_url is not loopback (set "+
				"allow_local to allow it)", at)
		}
	}
	return wrong
}

// checkObserving lists the mistakes in the settings of logs, the private listener and traces.
func (c Config) checkObserving() (wrong []string) {
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if _, _, err := net.SplitHostPort(c.Private.Listen); c.Private.Listen != "" &&
		(err != nil || c.Private.Listen == c.Listen) {
		report("private.listen %q must be an address like 127.0.0.1:9090 that differs from listen", c.Private.Listen)
	}
	if c.Log.Format != "" && c.Log.Format != "text" && c.Log.Format != "json" {
		report("log.format %q is neither text nor json", c.Log.Format)
	}
	if err := new(slog.Level).UnmarshalText([]byte(c.Log.Level)); c.Log.Level != "" && err != nil {
		report("log.level %q is not debug, info, warn or error", c.Log.Level)
	}
	if err := c.Tracing.check(); err != nil {
		report("%v", err)
	}
	return wrong
}

func (o Organization) check() (wrong []string) {
	switch o.SignIn.Type {
	case "local":
		seen := map[string]bool{}
		for _, u := range o.Users {
			if u.Email == "" || u.Password == "" || !u.Role.Valid() {
				wrong = append(wrong,
					fmt.Sprintf("user %q needs an e-mail address, a password and one of the roles owner, admin, "+
						"member, viewer", u.Email))
			}
			if seen[strings.ToLower(u.Email)] {
				wrong = append(wrong, fmt.Sprintf("user %q is listed twice", u.Email))
			}
			seen[strings.ToLower(u.Email)] = true
		}
	case "oidc":
		if o.SignIn.Issuer == "" || o.SignIn.ClientID == "" {
			wrong = append(wrong, "sign_in needs issuer and client_id")
		}
		if len(o.Users) > 0 {
			wrong = append(wrong, "users are only allowed with sign_in type local")
		}
	default:
		wrong = append(wrong, fmt.Sprintf("sign_in type %q is neither oidc nor local", o.SignIn.Type))
	}
	wrong = append(wrong, o.checkTrust()...)
	for role := range o.SignIn.Roles {
		if !role.Valid() {
			wrong = append(wrong, fmt.Sprintf("sign_in roles: %q is not a role", role))
		}
	}
	if _, err := o.policy(); err != nil {
		wrong = append(wrong, err.Error())
	}
	if err := o.parseFreshness(&signin.Organization{}); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

func (o Organization) policy() (snap.Policy, error) {
	p := snap.Policy{ShareTypes: o.Policy.ShareTypes, Unsanitized: o.Policy.UnsanitizedShares,
		Requires:      o.Policy.ShareRequires,
		NoDeviceLogin: o.Policy.DeviceLogin != nil && !*o.Policy.DeviceLogin}
	for _, t := range p.ShareTypes {
		if !t.Valid() {
			return p, fmt.Errorf("policy share_types: %q is neither sanitized nor snapshot", t)
		}
	}
	if !p.Unsanitized.Valid() {
		return p, fmt.Errorf("policy unsanitized_shares must be allow, ask or refuse, not %q", p.Unsanitized)
	}
	if !p.Requires.Valid() {
		return p, fmt.Errorf("policy share_requires must be certificate, not %q", p.Requires)
	}
	for _, limit := range []struct {
		name, text string
		into       *time.Duration
	}{
		{"max_cross_org_expiry", o.Policy.MaxCrossOrgExpiry, &p.MaxCrossOrgExpiry},
		{"max_key_age", o.Policy.MaxKeyAge, &p.MaxKeyAge},
	} {
		d, err := parseSetting("policy "+limit.name, limit.text, 0)
		if err != nil {
			return p, err
		}
		*limit.into = d
	}
	return p, nil
}

// parseFreshness parses the settings for how often people are confirmed at their identity provider
// and how long a session may last. It stores the results in the parameter into.
func (o Organization) parseFreshness(into *signin.Organization) error {
	for _, setting := range []struct {
		name, text string
		least      time.Duration
		into       *time.Duration
	}{
		{"sign_in recheck", o.SignIn.Recheck, time.Minute, &into.Recheck},
		{"policy max_staleness", o.Policy.MaxStaleness, time.Minute, &into.MaxStaleness},
		{"policy max_login", o.Policy.MaxLogin, time.Hour, &into.MaxLogin},
	} {
		d, err := parseSetting(setting.name, setting.text, 0)
		if err != nil {
			return err
		}
		if setting.text != "" && d < setting.least {
			return fmt.Errorf("%s: %s is less than %s", setting.name, setting.text, setting.least)
		}
		*setting.into = d
	}
	return nil
}

func (c Config) proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range c.TrustProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.1.2.0/24; write one address as 10.1.2.3/32", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// The values of sign_in_page.
const (
	signInList = "list"
	signInAsk  = "ask"
)

// listsOrganizations reports whether the sign-in page shows the names of all organizations to
// everybody. By default, the page shows them only in trials: when every organization has local
// users and public_url is loopback.
func (c Config) listsOrganizations() bool {
	u, err := url.Parse(c.PublicURL)
	if c.SignInPage != "" || err != nil || !snap.IsLoopback(u.Hostname()) {
		return c.SignInPage == signInList
	}
	return !slices.ContainsFunc(c.Organizations, func(o Organization) bool { return o.SignIn.Type != "local" })
}

func (c Config) signInOrganizations() []signin.Organization {
	var out []signin.Organization
	for _, o := range c.Organizations {
		org := signin.Organization{Slug: o.Slug, Domains: o.SignIn.Domains}
		_ = o.parseFreshness(&org) // checked when the configuration was read
		for _, u := range o.Users {
			org.Local = append(org.Local, signin.LocalUser{Email: u.Email, Name: u.Name, Password: u.Password,
				Role: u.Role, Groups: u.Groups})
		}
		if o.SignIn.Type == "oidc" {
			i := o.SignIn
			org.OIDC = &signin.OIDC{
				Issuer: i.Issuer, ClientID: i.ClientID, ClientSecret: i.ClientSecret, Scopes: i.Scopes,
				Claims: auth.ClaimNames{Groups: i.GroupsClaim, ExternalID: i.ExternalIDClaim}, Roles: i.Roles,
				AllowPrivate: i.AllowPrivate,
			}
		}
		for _, t := range o.Trust {
			org.Trust = append(org.Trust, t.rule(c.PublicURL))
		}
		out = append(out, org)
	}
	return out
}
