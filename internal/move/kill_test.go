package move_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/cloud"
	"snap/internal/move"
	"snap/internal/servertest"
	"snap/internal/store"
)

// workEnv holds a job. It makes the test program move data.
const workEnv = "SNAP_TEST_MOVE"

// job is the work of a process that is killed.
type job struct {
	What           string // transfer, backup or restore
	From, To       place
	Dir, BackupsIn string
}

// place is a site as given to the process.
type place struct{ Database, Blobs, Dir, Key string }

func TestMain(m *testing.M) {
	if text := os.Getenv(workEnv); text != "" {
		os.Exit(work(text))
	}
	os.Exit(m.Run())
}

// work does a job, prints a line for every step and waits for a byte before it
// continues, so that it can be killed at any of them.
func work(text string) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return 2
	}
	step := func(what any) {
		fmt.Println(what)
		io.ReadFull(os.Stdin, make([]byte, 1))
	}
	steps := move.Progress{
		Objects: func(done, _, _ int64) { step(done) },
		Table:   func(name string, _ int64) { step(name) },
	}
	var err error
	ctx := context.Background()
	switch j.What {
	case "transfer":
		_, err = move.Transfer(ctx, j.From.place(), j.To.place(), steps, false)
	case "backup":
		_, err = move.BackUp(ctx, move.Options{DataDir: j.From.Dir, Dir: j.BackupsIn}, steps)
	case "restore":
		_, err = move.Restore(ctx, j.BackupsIn, "", j.Dir, steps)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (p place) place() move.Place {
	sealer, _ := auth.NewSealer(p.Key) // the test's own key
	return move.Place{
		Database: store.Options{URL: p.Database, DataDir: p.Dir}, Sealer: sealer,
		Blobs: func(ctx context.Context) (blob.Store, error) {
			return cloud.OpenBlobs(ctx, cloud.Config{DataDir: p.Dir, Blob: cloud.Blob{URL: p.Blobs}})
		},
		CheckOwner: cloud.CheckOwner,
	}
}

func (s site) told() place { return place{s.database, s.blobs, s.dir, s.key} }

// killed runs a job repeatedly and kills it after a number of steps that the seed chooses, until it
// ends. check examines the state after each kill.
func killed(t *testing.T, j job, seed uint64, check func()) {
	t.Helper()
	text, err := json.Marshal(j)
	ok(t, err)
	random := rand.New(rand.NewPCG(seed, 1))
	kills := 0
	for steps := 1; ; steps += 1 + random.IntN(6) { // later each time, so that the loop ends
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), workEnv+"="+string(text))
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		ok(t, err)
		on, err := cmd.StdinPipe()
		ok(t, err)
		ok(t, cmd.Start())
		lines := bufio.NewScanner(out)
		n := 0
		for lines.Scan() {
			if n++; n == steps {
				break
			}
			io.WriteString(on, ".") // it may have ended
		}
		if n < steps { // it has ended by itself
			ok(t, cmd.Wait())
			if kills < 3 {
				t.Errorf("it was killed %d times only", kills)
			}
			return
		}
		ok(t, cmd.Process.Kill())
		io.Copy(io.Discard, out)
		cmd.Wait() // it was killed
		kills++
		check()
	}
}

// A transfer that is killed again and again, at objects and at tables, resumes
// each time, and everything arrives. Until then the destination has no row.
func TestTransferSurvivesKills(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), replicated(t)
	c := from.start(t, "")
	s := seed(t, c, 12)
	c.Service.Close()
	killed(t, job{What: "transfer", From: from.told(), To: to.told()}, 7, func() {
		half, err := store.Open(t.Context(), to.options())
		ok(t, err)
		if half.CheckEmpty(t.Context()) != nil {
			t.Error("a transfer that was killed left rows")
		}
		half.Close()
		if _, err := cloud.New(t.Context(), cloud.Config{Database: cloud.Database{URL: to.database}, DataDir: to.dir,
			PublicURL: "http://127.0.0.1:1"}, cloud.Options{}); err == nil {
			t.Error("a service starts on half a transfer")
		}
	})
	s.holds(t, to.start(t, c.URL), to)
}

// A killed backup leaves the previous one intact, and copies nothing twice. A killed restore
// resumes, and no service starts before it ends.
func TestBackUpAndRestoreSurviveKills(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	from, to, dir := embedded(t), embedded(t), t.TempDir()
	c := from.start(t, "")
	s := seed(t, c, 6)
	first, err := move.BackUp(t.Context(), move.Options{DataDir: from.dir, Dir: dir}, move.Progress{})
	ok(t, err)
	alice := c.As("alice@acme.test")
	for i := range 20 {
		s.shared = append(s.shared, c.Push(alice, "shop", fmt.Appendf(nil, "another content %d", i)))
	}
	s.lists = s.listing(t, c)
	killed(t, job{What: "backup", From: from.told(), BackupsIn: dir}, 11, func() {
		if b, err := move.Verify(t.Context(), dir, "", move.Progress{}); err != nil || b.Name != first.Name {
			t.Errorf("after a kill the newest backup is %+v, %v", b, err)
		}
	})
	if b, err := move.Verify(t.Context(), dir, "", move.Progress{}); err != nil || b.Objects != 26 || b.Added >= 20 {
		t.Errorf("the backup in the end: %+v, %v", b, err)
	}
	killed(t, job{What: "restore", Dir: to.dir, BackupsIn: dir}, 13, func() {
		if _, err := cloud.New(t.Context(), cloud.Config{DataDir: to.dir, PublicURL: "http://127.0.0.1:1"},
			cloud.Options{}); err == nil {
			t.Error("a service starts on half a restore")
		}
	})
	s.holds(t, to.start(t, c.URL), to)
}
