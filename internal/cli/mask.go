package cli

import (
	"regexp"
	"strings"
)

// maskKey masks an API key except for its first 8 and last 4 characters. It hides a key that is
// shorter than 24 characters completely.
func maskKey(key string) string {
	switch {
	case key == "":
		return ""
	case len(key) < 24:
		return "[hidden]"
	}
	return key[:8] + "…" + key[len(key)-4:]
}

var passwordInURL = regexp.MustCompile(`(^(?:\w*:)?[^/?#@:]*:|://[^/?#@]*?:)[^/?#]*@`)

var passwordInQuery = regexp.MustCompile(`(?i)([?&](?:\w*password|secret|token|key|secret_key|access_key)=)[^&#]*`)

// hidePassword masks the passwords in a URL. It keeps references such as ${NAME}, which are not
// secret.
func hidePassword(url string) string {
	mask := func(pattern *regexp.Regexp, s string, after string) string {
		return pattern.ReplaceAllStringFunc(s, func(m string) string {
			parts := pattern.FindStringSubmatch(m)
			secret := strings.TrimSuffix(strings.TrimPrefix(m, parts[1]), after)
			if reference.MatchString(secret) {
				return m
			}
			return parts[1] + "[hidden]" + after
		})
	}
	return mask(passwordInQuery, mask(passwordInURL, url, "@"), "")
}

var reference = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)
