package cli

import (
	"net/url"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// withCloud is a setup with a fresh cloud service and further variables.
func withCloud(t *testing.T, env map[string]string) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		c := cloudtest.Start(t, cloudtest.Options{})
		e.Values[cloudKey{}] = c
		e.Setenv("CLOUD", c.URL)
		e.Setenv("SNAPCLI_CLOUD__URL", c.URL)
		for name, value := range env {
			e.Setenv(name, value)
		}
		return nil
	}
}

// TestPostgresScripts runs the main job on a real PostgreSQL with a sample
// database, from build to load, and compares data and schema.
func TestPostgresScripts(t *testing.T) {
	t.Parallel()
	samples := servertest.Samples(t)
	source, destination := servertest.Postgres(t), servertest.Postgres(t)
	runScripts(t, "testdata/postgres",
		withCloud(t, map[string]string{"SAMPLES": samples, "SOURCE": source, "DESTINATION": destination}))
}

// TestLeftoverScripts lets doctor find and remove the remains of killed loads on servers.
func TestLeftoverScripts(t *testing.T) {
	t.Parallel()
	postgres, _ := servertest.CrashingPostgres(t) // its own server: loads of other tests clean up too
	mysql, err := url.Parse(servertest.OwnMySQL(t, "mariadb", ""))
	if err != nil {
		t.Fatal(err)
	}
	runScripts(t, "testdata/leftovers", withCloud(t, map[string]string{"POSTGRES": postgres, "MYSQL": mysql.String(),
		"MYSQL2": mysql.JoinPath("../other").String(), "MYSQL_PORT": mysql.Port()}))
}

// TestSampleScripts does the same as TestPostgresScripts, with the sample SQLite database.
func TestSampleScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/samples", withCloud(t, map[string]string{"SAMPLES": servertest.Samples(t)}))
}

// TestFullDisk: a full disk is reported in one sentence, and nothing is lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	runScripts(t, "testdata/fulldisk", withCloud(t, map[string]string{
		"SAMPLES": servertest.Samples(t), "SMALL": servertest.SmallDisk(t, 300<<10),
	}))
}
