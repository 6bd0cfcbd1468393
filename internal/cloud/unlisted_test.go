package cloud_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"snap"
	"snap/internal/cloud"
)

// A start names the organizations that the configuration no longer has.
func TestStartWarnsOfUnlistedOrganizations(t *testing.T) {
	t.Parallel()
	c := cloud.Config{PublicURL: "http://127.0.0.1:1", DataDir: t.TempDir(), Auth: cloud.Auth{ClientID: "snapcli"}}
	start := func(slugs ...string) string {
		var log bytes.Buffer
		c.Organizations = nil
		for _, slug := range slugs {
			c.Organizations = append(c.Organizations, cloud.Organization{Slug: slug, Name: slug, SignIn: cloud.SignIn{Type: "local"}, Users: []cloud.LocalUser{{Email: "x@" + slug + ".test", Password: "secret", Role: snap.RoleMember}}})
		}
		s, err := cloud.New(t.Context(), c, cloud.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		return log.String()
	}
	const warning = "an organization is not in the configuration"
	if log := start("acme", "globex"); strings.Contains(log, warning) {
		t.Errorf("all are listed:\n%s", log)
	}
	if log := start("globex"); strings.Count(log, warning) != 1 || !strings.Contains(log, "organization=acme") {
		t.Errorf("acme is not listed:\n%s", log)
	}
}
