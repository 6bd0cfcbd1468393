package cloud_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"snap"
	"snap/api"
	"snap/internal/servertest"
)

// olderProgram builds the last program whose number of migrations is less than the parameter below,
// from the repository's history, or skips the test.
func olderProgram(t *testing.T, below int) string {
	t.Helper()
	root := servertest.Root(t)
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			t.Skip("needs the repository's history: run it in a whole clone")
		}
		return strings.TrimSpace(string(out))
	}
	before := olderSchema(git, below)
	if before == "" {
		t.Skip("needs the repository's history: it has no older schema, or the clone is shallow")
	}
	source, dir := t.TempDir(), t.TempDir()
	tree := filepath.Join(dir, "tree.tar")
	git("archive", "--output", tree, before)
	run(t, source, "tar", "-xf", tree)
	program := filepath.Join(dir, "older")
	// The Makefile uses the same flags, so most is compiled already.
	run(t, source, "env", "CGO_ENABLED=0", "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o",
		program,
		"./cmd/snapcloud")
	return program
}

// migrations returns how many migrations the schema has today.
func migrations(t *testing.T) int {
	t.Helper()
	today, err := os.ReadDir(filepath.Join(servertest.Root(t), schemaFolder))
	must(t, err)
	return len(today)
}

const schemaFolder = "internal/store/migrations/postgres"

// olderSchema returns the newest commit whose number of migrations is less than the parameter
// below, or "". It skips commits in which two migrations have the same number, because such a
// program never served anybody.
func olderSchema(git func(...string) string, below int) string {
	for commit := range strings.FieldsSeq(git("log", "--format=%H", "--", schemaFolder)) {
		names := strings.Fields(git("ls-tree", "--name-only", commit+":"+schemaFolder))
		sound := true
		for i, name := range names {
			sound = sound && strings.HasPrefix(name, fmt.Sprintf("%04d_", i+1))
		}
		if sound && len(names) < below {
			return commit
		}
	}
	return ""
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// beside is a process of some version of the service.
type beside struct {
	t       *testing.T
	program string // empty: this one
	config  string
	url     string
	cmd     *exec.Cmd
}

// newBeside starts a process of the service with this database, bucket and public URL. If public is
// empty, the public URL is the process's own.
func newBeside(t *testing.T, program, database, bucket, public string) *beside {
	t.Helper()
	address := servertest.Address(t)
	b := &beside{t: t, program: program, url: "http://" + address, config: filepath.Join(t.TempDir(), "snapcloud.yaml")}
	if public == "" {
		public = b.url
	}
	must(t, os.WriteFile(b.config, fmt.Appendf(nil, `
listen: %s
public_url: %s
data_dir: %s
database: {url: %q}
blob: {url: %q}
organizations:
  - slug: acme
    sign_in: {type: local}
    users:
      - {email: alice@acme.test, password: x, role: owner}
      - {email: max@acme.test, password: x, role: member}
  - slug: globex
    sign_in: {type: local}
    users: [{email: gail@globex.test, password: x, role: owner}]
`, address, public, t.TempDir(), database, bucket), 0o600))
	b.start()
	t.Cleanup(b.kill)
	return b
}

// String names it by its age.
func (b *beside) String() string {
	if b.program == "" {
		return "the newer replica"
	}
	return "the older replica"
}

func (b *beside) start() {
	b.t.Helper()
	b.cmd = exec.CommandContext(b.t.Context(), b.program, "serve", "--config", b.config)
	if b.program == "" {
		b.cmd = exec.CommandContext(b.t.Context(), os.Args[0])
		b.cmd.Env = append(os.Environ(), serveEnv+"="+b.config)
		in, err := b.cmd.StdinPipe() // it serves until this ends
		must(b.t, err)
		b.t.Cleanup(func() { in.Close() })
	}
	b.cmd.Stderr = b.t.Output()
	must(b.t, b.cmd.Start())
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); time.Since(began) < servertest.Patience; <-again.C {
		req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+"/readyz", nil)
		must(b.t, err)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
	}
	b.t.Fatalf("%s did not become ready", b)
}

func (b *beside) kill() {
	b.cmd.Process.Kill()
	b.cmd.Wait()
}

func (b *beside) key(email string) string {
	_, org, _ := strings.Cut(strings.TrimSuffix(email, ".test"), "@")
	return strings.TrimSpace(run(b.t, ".", b.program, "--config", b.config, "key", "create", "--org", org, "--kind",
		"user", "--user", email))
}

func (b *beside) as(key string) *api.Client {
	c, err := api.New(api.Options{BaseURL: b.url, Mount: api.MountAgent, Token: api.StaticToken(key)})
	must(b.t, err)
	return c
}

// pushFrom pushes through three processes, one for each step.
func pushFrom(ctx context.Context, t *testing.T, key, name string, begin, sign, complete *beside) api.Snapshot {
	t.Helper()
	content := []byte("the bytes of " + name)
	sum := sha256.Sum256(content)
	plan, err := begin.as(key).Push(ctx, api.PushRequest{Target: "shop", Name: name, Type: snap.TypeSnapshot,
		Engine: snap.SQLite, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
	must(t, err)
	crc := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum(content)))
	signed, err := sign.as(key).Parts(ctx, plan.ID, api.PartsRequest{Parts: []api.PartSpec{{Number: 1, CRC64: crc}}})
	must(t, err)
	req, err := http.NewRequestWithContext(ctx, signed.URLs[0].Method, signed.URLs[0].URL, bytes.NewReader(content))
	must(t, err)
	for name, value := range signed.URLs[0].Headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	res.Body.Close()
	sn, err := complete.as(key).Complete(ctx, plan.ID)
	must(t, err)
	return sn
}

// Old and new replicas run side by side for one release: the last program with an older schema
// keeps running while the new one brings the database up to date, and both serve everybody. The
// older program can also be started again on the newer schema.
func TestOlderReplicasRunBesideNewer(t *testing.T) {
	t.Parallel()
	database, bucket := servertest.Postgres(t), servertest.S3(t)
	ctx := t.Context()
	older := newBeside(t, olderProgram(t, migrations(t)), database, bucket, "")
	alice, max, gail := older.key("alice@acme.test"), older.key("max@acme.test"), older.key("gail@globex.test")
	first := pushFrom(ctx, t, alice, "shop-1", older, older, older)

	newer := newBeside(t, "", database, bucket, older.url)
	sees := func(key string, want ...string) {
		t.Helper()
		for _, b := range []*beside{older, newer} {
			page, err := b.as(key).Snapshots(ctx, api.ListOptions{})
			must(t, err)
			var got []string
			for _, item := range page.Items {
				got = append(got, item.Name)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s lists %v, want %v", b, got, want)
			}
		}
	}
	mixed := func(a, b *beside, prefix string) {
		t.Helper()
		sn := pushFrom(ctx, t, alice, prefix, a, b, a)
		_, err := b.as(alice).Share(ctx, sn.ID)
		must(t, err)
		sees(max, prefix)
		must(t, a.as(alice).Unshare(ctx, sn.ID))
		sees(max)
		_, err = a.as(alice).ShareOrg(ctx, sn.ID, "globex", nil)
		must(t, err)
		sees(gail, prefix)
		_, err = b.as(gail).Pull(ctx, sn.ID)
		must(t, err)
		must(t, b.as(alice).Delete(ctx, sn.ID))
		sees(gail)
		for _, p := range []*beside{a, b} {
			if _, err := p.as(alice).VerifyAudit(ctx, nil); err != nil {
				t.Errorf("the audit log, at %s: %v", p, err)
			}
		}
	}
	sees(alice, first.Name)
	mixed(older, newer, "shop-2")
	mixed(newer, older, "shop-3")
	older.kill()
	older.start() // on the newer schema, as after a release was rolled back
	mixed(older, newer, "shop-4")
	if _, err := newer.as(older.key("max@acme.test")).Me(ctx); err != nil {
		t.Errorf("a key that the older program made: %v", err)
	}
	sees(alice, first.Name)
	older.refused(database)
}

// refused checks that an older program does not start on a database that it must no longer serve,
// and names both versions.
func (b *beside) refused(database string) {
	b.t.Helper()
	b.kill()
	db, err := sql.Open("pgx", database)
	must(b.t, err)
	defer db.Close()
	_, err = db.ExecContext(b.t.Context(), `UPDATE serving SET lowest = lowest + 1000, version = 'v9.8.7'`)
	must(b.t, err)
	cmd := exec.CommandContext(b.t.Context(), b.program, "serve", "--config", b.config)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != snap.ExitUsage ||
		!strings.Contains(string(out), "this is snapcloud ") || !strings.Contains(string(out), "v9.8.7") {
		b.t.Errorf("the older program ended with %v: %s", err, out)
	}
}
