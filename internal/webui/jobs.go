package webui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"snap"
	"snap/internal/local"
)

// jobState is where a job stands.
type jobState string

const (
	jobRunning  jobState = "running"
	jobDone     jobState = "done"
	jobFailed   jobState = "failed"
	jobCanceled jobState = "canceled"
)

// keptJobs is how many ended jobs are remembered.
const keptJobs = 100

// jobs are the long actions of this process, newest first. Watchers are told
// which jobs changed.
type jobs struct {
	now  func() time.Time
	ctx  context.Context
	end  context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	last     int
	all      []*job
	watchers map[*watcher]bool
}

// job is one long action: it goes on when the page is closed.
type job struct {
	id     int
	kind   string // "pull", "push", "load", "build", "sanitize"
	title  string
	target string
	cancel context.CancelFunc

	// Guarded by jobs.mu.
	state    jobState
	event    local.Event
	log      []logLine
	result   string
	snapshot string // name of the local snapshot that it made or used
	problem  error
	started  time.Time
	ended    time.Time
	// dismissed: taken out of the corner of the pages, kept on the Jobs page.
	dismissed bool
}

type logLine struct {
	At   time.Time
	Text string
}

// outcome is what a finished job says.
type outcome struct {
	text     string
	snapshot string // name of a local snapshot to go on with
}

func newJobs(now func() time.Time) *jobs {
	ctx, end := context.WithCancel(context.Background())
	return &jobs{now: now, ctx: ctx, end: end, watchers: map[*watcher]bool{}}
}

// start runs an action in the background. A second one of the same kind and
// target while the first runs is a conflict.
func (js *jobs) start(kind, target, title string, run func(context.Context, local.Progress) (outcome, error)) (int, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.state == jobRunning && j.title == title {
			return 0, &snap.Error{Code: snap.CodeConflict, Detail: fmt.Sprintf("this is under way already: %s", title), Hint: "wait for it, or cancel it on the Jobs page"}
		}
	}
	ctx, cancel := context.WithCancel(js.ctx)
	js.last++
	j := &job{id: js.last, kind: kind, title: title, target: target, cancel: cancel, state: jobRunning, started: js.now()}
	j.log = []logLine{{j.started, "started"}}
	js.all = append([]*job{j}, js.all...)
	if len(js.all) > keptJobs {
		js.forgetOldest()
	}
	js.wait.Go(func() {
		defer cancel()
		out, err := run(ctx, func(e local.Event) { js.progress(j, e) })
		js.finish(ctx, j, out, err)
	})
	js.tell(j.id)
	return j.id, nil
}

func (js *jobs) forgetOldest() {
	for i := len(js.all) - 1; i >= 0; i-- {
		if js.all[i].state != jobRunning {
			js.all = append(js.all[:i], js.all[i+1:]...)
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
		const most = 500
		if len(j.log) < most {
			j.log = append(j.log, logLine{js.now(), text})
		}
	}
	j.event = e
	js.tell(j.id)
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
		j.log = append(j.log, logLine{j.ended, "canceled; nothing was changed"})
	default:
		j.state, j.problem = jobFailed, err
		j.log = append(j.log, logLine{j.ended, "failed: " + err.Error()})
	}
	js.tell(j.id)
}

// stopOne cancels a job; it ends when what it does has been put back in order.
func (js *jobs) stopOne(id int) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.id == id {
			j.cancel()
			return nil
		}
	}
	return errNoJob(id)
}

// dismiss takes an ended job out of the corner of the pages.
func (js *jobs) dismiss(id int) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.id == id && j.state != jobRunning {
			j.dismissed = true
		}
	}
}

// stop cancels all jobs and waits for them.
func (js *jobs) stop() {
	js.end()
	js.wait.Wait()
}

// watcher learns which jobs changed since it last asked.
type watcher struct {
	wake  chan struct{}   // receives when there is something to take
	dirty map[int]bool    // guarded by jobs.mu
	news  map[string]bool // likewise: what else changed, by the name of its event
}

// watch returns a watcher of all jobs; call done when it is no longer needed.
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

// take returns the numbers of the jobs, and the names of other things, that
// changed since the last take.
func (js *jobs) take(w *watcher) (ids []int, news []string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	ids, news = slices.Sorted(maps.Keys(w.dirty)), slices.Sorted(maps.Keys(w.news))
	clear(w.dirty)
	clear(w.news)
	return ids, news
}

// announce tells every watcher that something else changed.
func (js *jobs) announce(name string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for w := range js.watchers {
		w.news[name] = true
		w.rouse()
	}
}

func (w *watcher) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell is called with mu held.
func (js *jobs) tell(id int) {
	for w := range js.watchers {
		w.dirty[id] = true
		w.rouse()
	}
}

func errNoJob(id int) error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: "there is no job " + strconv.Itoa(id), Hint: "jobs are forgotten when `snapcli serve` ends"}
}
