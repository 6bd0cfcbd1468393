package webui

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"snap/internal/local"
)

// jobState is the state of a job.
type jobState string

const (
	jobRunning     jobState = "running"
	jobDone        jobState = "done"
	jobFailed      jobState = "failed"
	jobCanceled    jobState = "canceled"
	jobInterrupted jobState = "interrupted" // its process ended
)

// keptJobs is how many jobs are kept. Beyond that, each new job removes the oldest one that has
// ended.
const keptJobs = 100

// jobs are the long operations of this process, newest first, followed by those that earlier
// processes left unfinished. Watchers receive the IDs of changed jobs.
type jobs struct {
	now       func() time.Time
	revisions *revisions
	journal   *journal // nil disables the journal
	log       *slog.Logger
	ctx       context.Context
	end       context.CancelFunc
	wait      sync.WaitGroup

	mu       sync.Mutex
	last     int
	all      []*job
	watchers map[*watcher]bool
}

// job is one long operation. It keeps running when the page is closed.
type job struct {
	id     int
	kind   string // such as "pull" or "build"
	title  string
	target string
	again  string // URL of the form that repeats the job
	cancel context.CancelFunc

	// Guarded by jobs.mu.
	revision string // newer after every change
	state    jobState
	event    local.Event
	log      []logLine
	result   string
	snapshot string // name of the local snapshot that the job created or used
	problem  error
	started  time.Time
	ended    time.Time
	// dismissed removes the job from the corner of the pages; the Jobs page still lists it.
	dismissed bool
}

type logLine struct {
	At   time.Time
	Text string
}

// outcome is the result of a finished job.
type outcome struct {
	text     string
	snapshot string // name of the local snapshot to continue with
}

// newJobs returns a list that contains only the jobs that an earlier process left unfinished.
func newJobs(now func() time.Time, log *slog.Logger, r *revisions, j *journal, left []unfinished) *jobs {
	ctx, end := context.WithCancel(context.Background())
	js := &jobs{now: now, log: log, revisions: r, journal: j, ctx: ctx, end: end, watchers: map[*watcher]bool{}}
	for _, u := range left {
		js.last++
		js.all = append(js.all, &job{
			id: js.last, revision: r.next(), kind: u.Kind, title: u.Title, target: u.Target, again: u.Again,
			state: jobInterrupted, started: u.Started, ended: u.Started, cancel: func() {},
			log: []logLine{{u.Started, "started"}},
		})
	}
	return js
}

// task describes a job to start.
type task struct {
	kind, target, title string
	again               string // URL of the form that repeats the job
	run                 func(context.Context, local.Progress) (outcome, error)
}

// start runs a task in the background. It returns a conflict if a job with the same title is
// running. It dismisses earlier jobs with that title that did not succeed.
func (js *jobs) start(t task) (int, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.title != t.title {
			continue
		}
		if j.state == jobRunning {
			return 0, errAlreadyRunning(t.title)
		}
		if j.state != jobDone {
			j.dismissed = true
		}
	}
	ctx, cancel := context.WithCancel(js.ctx)
	js.last++
	j := &job{id: js.last, kind: t.kind, title: t.title, target: t.target, again: t.again, cancel: cancel,
		state: jobRunning, started: js.now()}
	j.log = []logLine{{j.started, "started"}}
	js.all = append([]*job{j}, js.all...)
	if len(js.all) > keptJobs {
		js.forgetOldest()
	}
	js.note()
	js.notify(j)
	js.wait.Go(func() {
		defer cancel()
		out, err := t.run(ctx, func(e local.Event) { js.progress(j, e) })
		js.finish(ctx, j, out, err)
	})
	return j.id, nil
}

func (js *jobs) forgetOldest() {
	for i, j := range slices.Backward(js.all) {
		if j.state != jobRunning {
			js.all = slices.Delete(js.all, i, i+1)
			return
		}
	}
}

func (js *jobs) progress(j *job, e local.Event) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if e.Phase != j.event.Phase || e.Detail != "" && e.Detail != j.event.Detail {
		text := e.Phase
		if e.Detail != "" {
			text += ": " + e.Detail
		}
		const maxLines = 500
		if len(j.log) < maxLines {
			j.log = append(j.log, logLine{js.now(), text})
		}
	}
	j.event = e
	js.notify(j)
}

func (js *jobs) finish(ctx context.Context, j *job, out outcome, err error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	j.ended = js.now()
	switch {
	case err == nil:
		j.state, j.result, j.snapshot = jobDone, out.text, out.snapshot
		j.log = append(j.log, logLine{j.ended, out.text})
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		j.state = jobCanceled
		j.log = append(j.log, logLine{j.ended, endCanceled})
	default:
		j.state, j.problem = jobFailed, err
		j.log = append(j.log, logLine{j.ended, endFailed(err)})
	}
	if js.ctx.Err() == nil {
		js.note()
	}
	js.notify(j)
}

// note writes the running jobs to the journal. The caller must hold mu. A failure is only logged,
// because the jobs keep running regardless.
func (js *jobs) note() {
	if js.journal == nil {
		return
	}
	running := []unfinished{}
	for _, j := range js.all {
		if j.state == jobRunning {
			running = append(running, unfinished{Kind: j.kind, Title: j.title, Target: j.target, Again: j.again,
				Started: j.started})
		}
	}
	if err := js.journal.write(running); err != nil {
		js.log.Warn("a job may not be offered again after a restart", "err", err)
	}
}

// stopOne cancels a job. The job ends when it has cleaned up.
func (js *jobs) stopOne(id int) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.id == id {
			j.cancel()
			return nil
		}
	}
	return errNoJob(strconv.Itoa(id))
}

// dismiss removes an ended job from the corner of the pages.
func (js *jobs) dismiss(id int) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.id == id && j.state != jobRunning {
			j.dismissed = true
		}
	}
}

// stop cancels all jobs and waits for them. The next process offers to repeat the canceled ones.
func (js *jobs) stop() {
	js.mu.Lock()
	js.end()
	running := 0
	for _, j := range js.all {
		if j.state == jobRunning {
			running++
		}
	}
	js.mu.Unlock()
	js.wait.Wait()
	if js.journal != nil {
		js.journal.close(running)
	}
}

// watcher collects the jobs that changed since its last query.
type watcher struct {
	wake  chan struct{}   // receives a value when there are changes
	dirty map[int]bool    // guarded by jobs.mu
	news  map[string]bool // guarded by jobs.mu: other changes, by event name
}

// watch returns a watcher of all jobs. Call done when it is no longer needed.
func (js *jobs) watch() (w *watcher, done func()) {
	w = &watcher{wake: make(chan struct{}, 1), dirty: map[int]bool{}, news: map[string]bool{}}
	js.mu.Lock()
	defer js.mu.Unlock()
	js.watchers[w] = true
	return w, func() {
		js.mu.Lock()
		defer js.mu.Unlock()
		delete(js.watchers, w)
	}
}

// changes returns the IDs of the jobs that changed since the last call, and the names of other
// events since then.
func (js *jobs) changes(w *watcher) (ids []int, news []string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	ids, news = slices.Sorted(maps.Keys(w.dirty)), slices.Sorted(maps.Keys(w.news))
	clear(w.dirty)
	clear(w.news)
	return ids, news
}

// announce notifies every watcher of an event that is not a change of a job.
func (js *jobs) announce(name string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for w := range js.watchers {
		w.news[name] = true
		w.signal()
	}
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// notify marks a job as changed. The caller must hold mu.
func (js *jobs) notify(j *job) {
	j.revision = js.revisions.next()
	for w := range js.watchers {
		w.dirty[j.id] = true
		w.signal()
	}
}
