package webui

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"snap/internal/disk"
)

// journal records the running jobs on disk, so that the next process can offer to repeat the jobs
// of a process that exited or was killed. Each process has its own file and holds a lock on it
// while it runs.
type journal struct {
	path string
	lock *flock.Flock
}

// unfinished is a job that was running when its process ended.
type unfinished struct {
	Kind    string    `json:"kind"`
	Title   string    `json:"title"`
	Target  string    `json:"target"`
	Again   string    `json:"again"`
	Started time.Time `json:"started"`
}

const journalSuffix = ".jobs.json"

// openJournal chooses the name of this process's file in a folder and locks it. It returns the jobs
// in the files of processes that have ended.
func openJournal(dir string) (*journal, []unfinished, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("create the folder of jobs: %w", err)
	}
	left := claimFiles(dir)
	j := &journal{path: filepath.Join(dir, rand.Text()+journalSuffix)}
	j.lock = flock.New(j.path + ".lock")
	if _, err := j.lock.TryLock(); err != nil {
		return nil, nil, fmt.Errorf("lock the list of jobs: %w", err)
	}
	return j, left, nil
}

// claimFiles reads and removes the files of processes that have ended.
func claimFiles(dir string) (left []unfinished) {
	for _, file := range disk.Glob(dir, "*"+journalSuffix) {
		lock := flock.New(file + ".lock")
		if held, err := lock.TryLock(); err != nil || !held {
			continue
		}
		var jobs []unfinished
		if disk.ReadJSON(file, &jobs) == nil {
			for _, j := range jobs {
				if strings.HasPrefix(j.Again, "/") {
					left = append(left, j)
				}
			}
		}
		disk.RemoveTemporary(file)
		os.Remove(file)
		lock.Unlock()
		os.Remove(file + ".lock")
	}
	return left
}

// write replaces the list of running jobs.
func (j *journal) write(running []unfinished) error {
	if err := disk.ReplaceJSON(j.path, running); err != nil {
		return fmt.Errorf("write the list of jobs: %w", err)
	}
	return nil
}

// close ends the journal. Its file remains for the next process if jobs were running.
func (j *journal) close(running int) {
	if running == 0 {
		os.Remove(j.path)
	}
	j.lock.Unlock()
	os.Remove(j.path + ".lock")
}
