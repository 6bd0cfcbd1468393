package local

import (
	"testing"

	"snap"
)

// FuzzConfig checks that any config.yaml is read, or refused as a usage error.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{"", "cloud: {url: https://x}", "targets: {shop: {source: sqlite:///x}}",
		"targets: {../x: {}}", "cloud: [", "a: &a [*a]", "cloud: {url: 5}", "storage_profiles: {b: {url: \"s3://x\"}}",
		"\x00", "{? : }", "targets: null"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseConfig("config.yaml", text); err != nil && snap.CodeOf(err) != snap.CodeUsage {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
