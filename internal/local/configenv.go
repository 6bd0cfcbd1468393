package local

import (
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"

	"snap"
)

const envPrefix = "SNAPCLI_"

// envKeys returns the settings in the environment: SNAPCLI_CLOUD__URL sets cloud.url. The names of
// targets, storage profiles and tables in the file match in any case, with _ for characters that a
// variable's name cannot contain. All other names are converted to lower case; the variables with
// such names are found in the process's own environment, because the function env cannot list
// variables. A variable with a single underscore in place of a dot, such as SNAPCLI_CLOUD_URL, is
// an error, because otherwise it would silently have no effect.
func envKeys(file *koanf.Koanf, env func(string) string) (map[string]any, error) {
	known := map[string]string{}
	for _, path := range settingPaths(reflect.TypeFor[Config](), nil, func(at []string) []string {
		return file.MapKeys(strings.Join(at, keyDelim))
	}) {
		key := strings.Join(path, keyDelim)
		known[envName(key)] = key
	}
	for name := range known {
		if meant := strings.ReplaceAll(name, "__", "_"); known[meant] == "" && env(meant) != "" {
			return nil, snap.Usage(fmt.Sprintf("the environment variable %s has no effect", meant),
				"use "+name+" instead: two underscores stand for a dot")
		}
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if _, ok := known[name]; ok || !strings.HasPrefix(name, envPrefix) || !strings.Contains(name, "__") {
			continue
		}
		known[name] = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "__", keyDelim)
	}
	set := map[string]any{}
	for name, key := range known {
		value := env(name)
		switch parts := strings.Split(key, keyDelim); {
		case value == "":
		case key == "identities" || key == "postgres_tools" || len(parts) == 3 && slices.Contains(targetLists(),
			parts[2]):
			set[key] = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '\n' })
		default:
			set[key] = value
		}
	}
	return set, nil
}

// targetLists returns the settings of a target that are lists of strings without commas. A variable
// for grants therefore holds one statement.
func targetLists() []string {
	return []string{"encrypt_to", "include", "schemas", "exclude", "exclude_data", "exclude_extensions", "omit",
		"password_command", "destination_password_command", "scratch_password_command"}
}

// envName returns the name of the environment variable that sets a key.
func envName(key string) string {
	var b strings.Builder
	b.WriteString(envPrefix)
	for _, r := range strings.ToUpper(strings.ReplaceAll(key, keyDelim, "__")) {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	return b.String()
}

// expand replaces ${NAME} with the value of that environment variable. A $ without a brace remains.
// An unset or empty variable is an error of code usage, because an empty password would only fail
// later and less clearly.
func expand(s string, env func(string) string) (string, error) {
	return expandEach(s, env, func(_, _, value string) string { return value })
}

// expandURL is like expand, for a URL. It encodes each value for the part of the URL that contains
// the reference, so that a password may contain any character. It does not encode a variable that
// holds a whole URL or a host.
func expandURL(raw string, env func(string) string) (string, error) {
	return expandEach(raw, env, encodeInURL)
}

// expandEach replaces each reference with the result of encode. encode receives the value, and the
// unexpanded text before and after the reference.
func expandEach(s string, env func(string) string, encode func(before, after, value string) string) (string, error) {
	var b strings.Builder
	for at := 0; ; {
		before, rest, found := strings.Cut(s[at:], "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", snap.Usage("a ${ in the configuration has no closing }", "")
		}
		value := env(name)
		if value == "" {
			return "", snap.Usage(fmt.Sprintf("the configuration uses the environment variable %s, which is not set",
				name), "set it, or change the configuration with `snapcli config edit`")
		}
		b.WriteString(encode(s[:at+len(before)], after, value))
		at = len(s) - len(after)
	}
}

// encodeInURL encodes a value for its position in a URL, between the parts before and after (RFC
// 3986, section 3).
func encodeInURL(before, after, value string) string {
	_, inside, opened := strings.Cut(before, ":")
	authority, hasAuthority := strings.CutPrefix(inside, "//")
	inAuthority := hasAuthority && !strings.ContainsAny(authority, "/?#")
	restOfAuthority, _, _ := strings.Cut(strings.NewReplacer("?", "/", "#", "/").Replace(after), "/")
	switch {
	case !opened:
		return value
	case strings.Contains(inside, "?"):
		return url.QueryEscape(value)
	case inAuthority && strings.Contains(restOfAuthority, "@"):
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	case inAuthority:
		return value
	}
	return (&url.URL{Path: value}).EscapedPath()
}
