package cloud_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auditlog"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// archiveSchema is the migration that a program must know to read an archived log.
const archiveSchema = 25

// A program that cannot read the archive of the audit log serves the database next to the current
// program until the first lines are archived. From then on it refuses to start, and names its own
// version and the schema that it needs.
func TestOlderProgramRefusesAnArchivedLog(t *testing.T) {
	t.Parallel()
	program := olderProgram(t, archiveSchema)
	database, bucket, ctx := servertest.Postgres(t), servertest.S3(t), t.Context()
	a := &archived{clock: clocktest.New(time.Now().Add(-archiveAfter))}
	a.watched = watch(t, cloudtest.Options{DatabaseURL: database, BlobURL: bucket, Clock: a.clock,
		Config: func(c *cloud.Config) { c.Audit.ArchiveAfter = "40d" }})
	a.write(auditlog.ChunkLines)
	older := newBeside(t, program, database, bucket, a.URL)
	if _, err := older.as(older.key("alice@acme.test")).Me(ctx); err != nil {
		t.Errorf("before anything is archived: %v", err)
	}
	older.kill()
	a.clock.Advance(archiveAfter + time.Hour)
	must(t, a.Service.Sequence(ctx))
	must(t, a.Service.ArchiveLogs(ctx))
	a.keep()
	out, err := exec.CommandContext(ctx, program, "serve", "--config", older.config).CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != snap.ExitUsage ||
		!strings.Contains(string(out), "this is snapcloud ") || !strings.Contains(string(out), "schema 25 or newer") {
		t.Errorf("the older program ended with %v: %s", err, out)
	}
	a.keep()
}
