package deploy_test

import (
	"path/filepath"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// TestReleaseConfig reads the releases' configuration as GoReleaser does, where an unknown key is an
// error, and checks that it has everything a release needs.
func TestReleaseConfig(t *testing.T) {
	t.Parallel()
	project, err := config.Load(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Builds) != 2 || len(project.SBOMs) == 0 || len(project.Signs) == 0 ||
		project.Checksum.NameTemplate == "" {
		t.Errorf("a release lacks programs, SBOMs, signatures or checksums: %+v", project)
	}
	for _, b := range project.Builds {
		if b.ModTimestamp != "{{ .CommitTimestamp }}" {
			t.Errorf("%s has the time of its build in it", b.Binary)
		}
	}
}
