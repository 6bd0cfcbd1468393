package foreign

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"snap"
)

// Greenmask reads a Greenmask configuration as one target. name is the target's name; "" uses the
// name of the database.
func Greenmask(file string, text []byte, name string) (Found, error) {
	root, err := parse(file, text)
	if err != nil {
		return Found{}, err
	}
	dump := root.get("dump")
	if dump == nil {
		return Found{}, snap.Usage(file+" is not a Greenmask configuration: it has no dump section",
			"give the path of the other tool's configuration")
	}
	g := &greenmask{}
	options := dump.get("pg_dump_options")
	out := Target{Name: name, Source: g.database(options), Jobs: int(options.number("jobs"))}
	out.Destination = g.database(root.get("restore").get("pg_restore_options"))
	if out.Name == "" {
		out.Name = nameOf(out.Source)
	}
	if out.Name == "" {
		return Found{}, snap.Usage("the configuration has no name for the target",
			"give it a name: --target NAME")
	}
	if out.Name, err = snap.CleanTarget(out.Name); err != nil {
		return Found{}, err
	}
	g.target = out.Name
	for _, t := range dump.get("transformation").list() {
		g.table(t)
	}
	out.Rules = g.rules.text(file)
	g.Targets = []Target{out}
	g.storage(root.get("storage"))
	for _, o := range []*tree{options, root.get("restore").get("pg_restore_options")} {
		o.unread(func(t *tree) {
			g.left(t, "has no equivalent: a snapshot contains the whole database and is loaded as a whole")
		})
	}
	for _, key := range []string{"scripts", "insert_error_exclusions"} {
		if t := root.get("restore").get(key); t != nil {
			g.left(t, "has no equivalent: a load replaces a database with exactly the snapshot's content")
		}
	}
	for _, key := range []string{"common", "log", "validate", "custom_transformers"} {
		if t := root.get(key); t != nil {
			g.left(t, "is not needed, or has no equivalent")
		}
	}
	g.leftUnread(root)
	return g.Found, nil
}

type greenmask struct {
	Found
	target string
	rules  ruleSet
}

var reference = regexp.MustCompile(`\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)([^}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// variables returns a setting with its references to environment variables in the syntax of
// snapcli.
func (g *greenmask) variables(t *tree) string {
	return reference.ReplaceAllStringFunc(t.text, func(s string) string {
		m := reference.FindStringSubmatch(s)
		switch {
		case s == "$$":
			return "$"
		case m[3] != "":
			return "${" + m[3] + "}"
		case m[2] != "" && !strings.HasPrefix(strings.TrimPrefix(m[2], ":"), "?"): // ? makes the variable required
			g.Left = append(g.Left,
				Left{t.line, t.path, "a default has no equivalent: set the environment variable " + m[1]})
		}
		return "${" + m[1] + "}"
	})
}

// database builds a URL from the options that locate a database.
func (g *greenmask) database(o *tree) string {
	words := map[string]string{}
	if t := o.get("dbname"); t != nil {
		raw := g.variables(t)
		if strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://") || raw == "" {
			return raw
		}
		if !strings.Contains(raw, "=") {
			raw = "dbname='" + raw + "'"
		}
		words = conninfo(raw)
	}
	for option, word := range map[string]string{"host": "host", "port": "port", "username": "user"} {
		if t := o.get(option); t != nil {
			words[word] = g.variables(t)
		}
	}
	if words["dbname"] == "" {
		return ""
	}
	return postgresURL(words)
}

// conninfo parses libpq's key=value words (section 34.1.1.1 of PostgreSQL's manual).
func conninfo(text string) map[string]string {
	words := map[string]string{}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key, rest, ok := strings.Cut(text, "=")
		if !ok {
			return words
		}
		var value strings.Builder
		rest = strings.TrimLeft(rest, " ")
		quoted := strings.HasPrefix(rest, "'")
		i := 0
		if quoted {
			i = 1
		}
		for ; i < len(rest); i++ {
			c := rest[i]
			if c == '\\' && i+1 < len(rest) {
				i++
				value.WriteByte(rest[i])
				continue
			}
			if quoted && c == '\'' || !quoted && c == ' ' {
				i++
				break
			}
			value.WriteByte(c)
		}
		words[strings.TrimSpace(key)], text = value.String(), rest[i:]
	}
	return words
}

func postgresURL(words map[string]string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + words["dbname"]}
	q := url.Values{}
	host, port := cmp.Or(words["host"], "localhost"), words["port"]
	if strings.HasPrefix(host, "/") { // a socket
		q.Set("host", host)
		if port != "" {
			q.Set("port", port)
		}
	} else {
		u.Host = host
		if port != "" {
			u.Host = net.JoinHostPort(host, port)
		}
	}
	for key, value := range words {
		if !slices.Contains([]string{"host", "port", "dbname", "user", "password"}, key) {
			q.Set(key, value)
		}
	}
	u.RawQuery = q.Encode()
	if words["user"] != "" {
		u.User = url.User(words["user"])
		if words["password"] != "" {
			u.User = url.UserPassword(words["user"], words["password"])
		}
	}
	// References to the environment must not be percent-encoded.
	return strings.NewReplacer("%24%7B", "${", "%7B", "{", "%7D", "}").Replace(u.String())
}

func nameOf(source string) string {
	u, err := url.Parse(source)
	if err != nil || strings.Contains(u.Path, "$") {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// storage converts a bucket or folder to a storage profile.
func (g *greenmask) storage(s *tree) {
	switch s.value("type") {
	case "s3":
		c := s.get("s3")
		for _, key := range []string{"access_key_id", "secret_access_key", "session_token", "role_arn",
			"session_name"} {
			if t := c.get(key); t != nil {
				g.left(t, "credentials are taken from the environment, as S3 tools do: AWS_ACCESS_KEY_ID and "+
					"AWS_SECRET_ACCESS_KEY")
			}
		}
		if bucket := c.get("bucket"); bucket != nil && !strings.Contains(bucket.text, "$") {
			c.get("force_path_style") // not reported as unread: path style is the default of an endpoint
			g.Profiles = append(g.Profiles,
				Profile{g.target, s3URL(bucket.text, c.value("prefix"), c.value("endpoint"), c.value("region"))})
		} else if bucket != nil {
			g.left(bucket, "add the storage profile by hand: its bucket is set only in the environment")
		}
		c.unread(func(t *tree) { g.left(t, "has no equivalent") })
	case "directory":
		if path := s.get("directory").value("path"); path != "" {
			g.Profiles = append(g.Profiles, Profile{g.target, (&url.URL{Scheme: "file", Path: path}).String()})
		}
	default:
		if s != nil {
			g.left(s, "is an unknown kind of storage")
		}
	}
}

// table converts the rules of a table.
func (g *greenmask) table(t *tree) {
	table := snap.TableName(t.value("schema"), t.value("name"))
	for _, c := range t.get("subset_conds").list() {
		g.left(c, "is a flag in snapcli: snapcli build %s --where %s", snap.ShellWord(g.target),
			snap.ShellWord(table+"="+c.text))
	}
	for key, why := range map[string]string{
		"query": "has no equivalent: choose rows with snapcli build --where, and change values with " +
			"rules or SQL",
		"columns_type_override": "is not needed: masks adapt to the form of each value",
		"apply_for_inherited":   "write a rule for every partition: a name may contain *",
		"when":                  "is written in another language: add `when` and `else` to the rules of the columns",
	} {
		if o := t.get(key); o != nil {
			g.left(o, "%s", why)
		}
	}
	for _, transformer := range t.get("transformers").list() {
		g.transformer(table, transformer)
	}
}

// transformer converts a transformer of one or several columns.
func (g *greenmask) transformer(table string, t *tree) {
	name, params := t.value("name"), t.get("params")
	references := t.value("apply_for_references") == "true"
	if o := t.get("when"); o != nil {
		g.left(o, "is written in another language: add `when` and `else` to the rule, otherwise every row is masked")
	}
	if o := t.get("dynamic_params"); o != nil {
		g.left(o, "has no exact equivalent: the mask `template` combines masked values of other columns")
	}
	columns := params.get("columns").list()
	if c := params.get("column"); c != nil {
		columns = append(columns, c)
	}
	if len(columns) == 0 {
		g.left(t, "%s names no column", name)
		return
	}
	for _, c := range columns {
		column := c.text
		if !c.scalar {
			column = c.value("name")
		}
		mask, exact := maskOf(name, params, c)
		report := func(why string, args ...any) {
			g.Left = append(g.Left, Left{t.line, table + "." + column, fmt.Sprintf(why, args...)})
		}
		if mask == "" {
			report("%s has no equivalent: sanitizing stops at the column unless another transformer gave it a rule",
				name)
			continue
		}
		if !exact {
			report("%s became %s, which produces different values", name, mask)
		}
		if references {
			mask = toReferences(mask)
		}
		if !g.rules.set(table, column, mask) {
			report("has several transformers: %s is used instead of the one before it", name)
		}
	}
	if keep := params.get("keep_null"); keep != nil && keep.text == "false" {
		g.left(keep, "has no equivalent: NULL stays NULL")
	}
	t.markRead() // the remaining parameters only describe details of Greenmask's values
}

// toReferences adds apply_to_references to a rule.
func toReferences(mask string) string {
	if inside, ok := strings.CutPrefix(mask, "{"); ok {
		return "{apply_to_references: true, " + inside
	}
	return "{mask: " + mask + ", apply_to_references: true}"
}

// maskOfMasking returns the mask for a type of the Masking transformer.
func maskOfMasking(name string) (mask string, ok bool) {
	mask, ok = map[string]string{
		"email": "email", "mobile": "phone", "tel": "phone", "telephone": "phone", "addr": "address",
		"address": "address", "id": "format", "credit": "format", "credit_cart": "format",
	}[name]
	return mask, ok
}

// maskOf returns, as YAML, the rule that corresponds to a transformer, or "" if there is none.
// exact means that the mask produces values of the same kind as the transformer.
func maskOf(name string, params, column *tree) (mask string, exact bool) {
	if m, ok := sameMask(name); ok {
		return m, true
	}
	if m, exact, ok := rangeMask(name, params); ok {
		return m, exact
	}
	if m, exact, ok := listedMask(name, params); ok {
		return m, exact
	}
	switch name {
	case "RandomString", "RandomAmountWithCurrency":
		return "format", false
	case "Masking":
		if m, ok := maskOfMasking(params.value("type")); ok {
			return m, false
		}
		return "redact", params.value("type") == "" || params.value("type") == "default"
	case "Replace":
		if v := params.get("value"); v != nil && v.scalar && !v.null {
			return fmt.Sprintf("{mask: constant, value: %s}", strconv.Quote(v.text)), true
		}
	case "NoiseInt", "NoiseFloat", "NoiseNumeric":
		m := noiseMask(params)
		return m, m != ""
	case "NoiseDate":
		return shiftMask(params), false
	case "Template":
		return templateMask(params.value("template")), false
	case "RandomPerson":
		return personMask(column.value("template"))
	case "RealAddress":
		return addressMask(column.value("template"))
	}
	return "", false
}

func noiseMask(params *tree) string {
	ratio := cmp.Or(params.number("max_ratio"), params.number("ratio"))
	if ratio <= 0 || ratio > 1 {
		return ""
	}
	return fmt.Sprintf("{mask: noise, percent: %s}", strconv.FormatFloat(ratio*100, 'g', 6, 64))
}

func shiftMask(params *tree) string {
	days := daysOf(cmp.Or(params.value("max_ratio"), params.value("ratio")))
	if days <= 0 {
		return ""
	}
	return fmt.Sprintf("{mask: shift, days: %d}", days)
}

func personMask(template string) (string, bool) {
	first, last := strings.Contains(template, ".FirstName"), strings.Contains(template, ".LastName")
	switch {
	case first && last:
		return "name", true
	case first:
		return "first_name", true
	case last:
		return "last_name", true
	case strings.Contains(template, ".Title"), strings.Contains(template, ".Gender"):
		return "redact", false
	}
	return "", false
}

func addressMask(template string) (string, bool) {
	switch {
	case strings.Contains(template, ".Address"):
		return "address", true
	case strings.Contains(template, ".City"):
		return "city", true
	case strings.Contains(template, ".PostalCode"):
		return "format", false
	case strings.Contains(template, ".Latitude"):
		return "{mask: number, min: -90, max: 90, decimals: 6}", true
	case strings.Contains(template, ".Longitude"):
		return "{mask: number, min: -180, max: 180, decimals: 6}", true
	case template != "":
		return "redact", false
	}
	return "", false
}

var span = regexp.MustCompile(`(\d+)\s*(year|mon|week|day)`)

// daysOf returns the number of days in a PostgreSQL interval. It returns 1 for an interval shorter
// than a day, and 0 for an empty or extremely long one.
func daysOf(interval string) int {
	days := 0
	for _, m := range span.FindAllStringSubmatch(interval, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > 100_000 {
			return 0
		}
		days += n * map[string]int{"year": 365, "mon": 30, "week": 7, "day": 1}[m[2]]
	}
	if days == 0 && strings.ContainsAny(interval, "123456789") {
		return 1
	}
	return days
}
