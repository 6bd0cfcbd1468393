package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"snap/internal/disk"
	"snap/internal/engine"
	"snap/internal/transfer"
)

// Leftover is a file or database that a failed or killed command left behind.
type Leftover struct {
	Where string // a folder, or a database URL without its password
	Name  string
}

// Leftovers returns what commands left behind in the data directory and on the servers of the
// destinations and scratch copies. It skips servers that do not respond; [Agent.CheckTarget]
// reports these servers. Each name is listed once, even if several destinations are on its server.
func (a *Agent) Leftovers(ctx context.Context) []Leftover {
	all := a.leftFiles()
	a.eachServer(a.Targets(), func(d database, m engine.Cleaner) {
		names, err := m.Leftovers(ctx, d.url)
		if err != nil {
			a.log.Warn("cannot list the remains of loads on a server", "server", d.shown, "err", err)
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.ContainsFunc(all, func(l Leftover) bool { return l.Name == name })
		})
		all = append(all, leftAt(d.shown, names)...)
	})
	return all
}

// RemoveLeftovers removes the remains that Leftovers finds, and returns them. The error is that of
// the first server on which the removal failed.
func (a *Agent) RemoveLeftovers(ctx context.Context) (removed []Leftover, err error) {
	removed = a.leftFiles()
	sweepWork(a.tempDir())
	for _, dir := range a.snapshotFolders() {
		sweepParts(dir)
		a.abandonedDownloads(dir, true)
	}
	a.eachServer(a.Targets(), func(d database, m engine.Cleaner) {
		names, failed := m.RemoveLeftovers(ctx, d.url)
		removed = append(removed, leftAt(d.shown, names)...)
		if failed != nil && err == nil {
			err = fmt.Errorf("clean up %s: %w", d.shown, failed)
		}
	})
	return removed, err
}

// cleanUpTimeout is how long a command waits for the servers that [Agent.cleanUpTarget] cleans up.
const cleanUpTimeout = 5 * time.Second

// cleanUpTarget removes the remains of killed commands on a target's destination and scratch
// server, in the background. A killed `snapcli sanitize --sql`, for example, leaves a scratch
// database with original data. The caller must call wait before the command ends, and show the
// returned sentences to the user. cleanUpTarget skips a server that does not respond.
func (a *Agent) cleanUpTarget(ctx context.Context, t Target) (wait func() []string) {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTimeout)
	done := make(chan []string)
	go func() {
		var sentences []string
		a.eachServer([]Target{t}, func(d database, m engine.Cleaner) {
			removed, err := m.RemoveLeftovers(ctx, d.url)
			if err != nil {
				a.log.Warn("cannot remove the remains of killed commands", "server", d.shown, "err", err)
			}
			for _, name := range removed {
				sentences = append(sentences, fmt.Sprintf("removed %s, which an interrupted command left on %s",
					name, d.shown))
			}
		})
		done <- sentences
	}()
	return func() []string { defer cancel(); return <-done }
}

// keptDownload is how long an interrupted pull is kept, so that it can be resumed.
const keptDownload = 7 * 24 * time.Hour

// abandonedDownloads returns the names of the files that interrupted pulls left in a folder of
// snapshots, if nobody resumed the pull for a week. It removes the files if remove is set.
func (a *Agent) abandonedDownloads(dir string, remove bool) []string {
	return transfer.Abandoned(dir, a.now().Add(-keptDownload), remove)
}

func leftAt(where string, names []string) (all []Leftover) {
	for _, name := range names {
		all = append(all, Leftover{where, name})
	}
	return all
}

// eachServer calls f once for each destination and scratch database of the targets, even if several
// of them are on one server.
func (a *Agent) eachServer(targets []Target, f func(database, engine.Cleaner)) {
	seen := map[string]bool{}
	for _, t := range targets {
		for _, at := range []place{t.destination(), t.scratch()} {
			if at.raw == "" {
				continue
			}
			d, err := a.databaseAt(at)
			if err != nil || seen[strings.Join(placesOf(d), "; ")] {
				continue
			}
			seen[strings.Join(placesOf(d), "; ")] = true
			if m, ok := d.engine.(engine.Cleaner); ok {
				f(d, m)
			}
		}
	}
}

// leftFiles returns the temporary files of commands that no longer run.
func (a *Agent) leftFiles() (all []Leftover) {
	eachAbandoned(a.tempDir(), workLocks, func(path string) {
		all = append(all, Leftover{a.tempDir(), strings.TrimSuffix(filepath.Base(path), ".lock")})
	})
	for _, dir := range a.snapshotFolders() {
		eachAbandoned(dir, "*"+partSuffix, func(path string) {
			all = append(all, Leftover{dir, filepath.Base(path)})
		})
		all = append(all, leftAt(dir, a.abandonedDownloads(dir, false))...)
	}
	return all
}

// snapshotFolders returns the snapshot folders of all targets.
func (a *Agent) snapshotFolders() (dirs []string) {
	entries, _ := os.ReadDir(a.snapshotsDir(""))
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, a.snapshotsDir(e.Name()))
		}
	}
	return dirs
}

// eachAbandoned calls f for each file in a folder that matches a pattern and that a killed command
// left behind, which means that no process holds its lock. It holds the lock during the call.
func eachAbandoned(dir, pattern string, f func(path string)) {
	for _, path := range disk.Glob(dir, pattern) {
		lock := flock.New(path, flock.SetFlag(os.O_RDWR))
		if free, err := lock.TryLock(); err == nil && free {
			f(path)
		}
		_ = lock.Close()
	}
}
