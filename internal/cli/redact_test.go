package cli

import (
	"strings"
	"testing"
)

// TestRedact: T9, a line of --debug shows no secret, and everything else is unchanged.
func TestRedact(t *testing.T) {
	t.Parallel()
	var s secrets
	s.add("opaque-refresh-token", "x")
	for line, want := range map[string]string{
		`key=cak_abcdefABCDEF0123456789012345678901234567 end`:     `key=cak_[hidden] end`,
		`token eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln`:          `token [hidden]`,
		`Authorization: Bearer abc.def`:                            `Authorization: Bearer [hidden]`,
		`refresh opaque-refresh-token`:                             `refresh [hidden]`,
		`url="https://s3.example/b/k?X-Amz-Signature=abc&x=1" n=1`: `url="https://s3.example/b/k?[hidden]" n=1`,
		`GET http://127.0.0.1:8080/blobs/abc123def`:                `GET http://127.0.0.1:8080/blobs/[hidden]`,
		`path=/blobs/parts/abc123 status=200`:                      `path=/blobs/parts/[hidden] status=200`,
		`source=postgres://me:secret@host/db`:                      `source=postgres://me:[hidden]@host/db`,
		`source=postgres://me:p@ss@host/db`:                        `source=postgres://me:[hidden]@host/db`,
		`path=/api/v1/agents/snapshots/snap_0123456789abcdef ` +
			`status=1`: `path=/api/v1/agents/snapshots/snap_0123456789abcdef status=1`,
	} {
		if got := s.redact(line); got != want {
			t.Errorf("redact(%q)\n = %q\nwant %q", line, got, want)
		}
	}
}

// TestHidePassword: secrets in URLs are masked, references are not.
func TestHidePassword(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"postgres://me:secret@host/db":            "postgres://me:[hidden]@host/db",
		"postgres://me:p@ss@host/db":              "postgres://me:[hidden]@host/db",
		"postgres://me@host/db?sslpassword=x":     "postgres://me@host/db?sslpassword=[hidden]",
		"postgres://me:${PGPASS}@host/db":         "postgres://me:${PGPASS}@host/db",
		"postgres://me@host/db?password=x&a=b":    "postgres://me@host/db?password=[hidden]&a=b",
		"s3://bucket/p?region=eu&secret_key=abc":  "s3://bucket/p?region=eu&secret_key=[hidden]",
		"sqlite:///tmp/a:b@c.db":                  "sqlite:///tmp/a:b@c.db",
		"mysql://u:p${X}@h/d":                     "mysql://u:[hidden]@h/d",
		"postgres://host/db":                      "postgres://host/db",
		"postgres:me:secret@host/db":              "postgres:me:[hidden]@host/db",
		"me:secret@host/db":                       "me:[hidden]@host/db",
		"postgres://me:a:b@host/db?sslmode=allow": "postgres://me:[hidden]@host/db?sslmode=allow",
	} {
		if got := hidePassword(in); got != want {
			t.Errorf("hidePassword(%q) = %q, want %q", in, got, want)
		}
	}
	if got := maskKey("cak_abcdefghijklmnopqrstuvwxyz0123456789AB"); strings.Contains(got, "efgh") ||
		got != "cak_abcd…89AB" {
		t.Errorf("maskKey = %q", got)
	}
}
