package webui

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap/internal/local"
	"snap/internal/look"
)

// jobView is a job's state at one moment, as a page shows it.
type jobView struct {
	ID          int
	Revision    string
	Kind        string
	Title       string
	State       jobState
	Phase       string
	Done, Total int64
	Result      string
	Problem     *problem
	Snapshot    string
	Again       string // URL of the form that repeats the job
	Started     time.Time
	Took        time.Duration
	Log         []logLine
	Full        bool // including the log, for the Jobs page
}

// Running reports whether the job can still be canceled.
func (j jobView) Running() bool { return j.State == jobRunning }

// Ask reports whether repeating the job begins with a question, as for a load.
func (j jobView) Ask() bool { return j.Kind == "load" }

// Transfer reports whether the job is a push or a pull, which continues where an interrupted one
// stopped.
func (j jobView) Transfer() bool { return j.Kind == "push" || j.Kind == "pull" }

// Review returns the path of the review of the rules that the job proposed, or "".
func (j jobView) Review() string {
	if j.Kind != "rules" {
		return ""
	}
	return strings.TrimSuffix(j.Again, "/propose")
}

// Load returns the path of the page that loads the snapshot into a database.
func (j jobView) Load() string {
	return row{Local: &local.Snapshot{Name: j.Snapshot}}.LocalAction("load")
}

// Percent returns how much is done, or -1 if unknown.
func (j jobView) Percent() int {
	if j.Total <= 0 {
		return -1
	}
	return int(min(100, 100*j.Done/j.Total))
}

// Speed formats the mean rate so far. It is empty until the rate is meaningful.
func (j jobView) Speed() string {
	if j.Done <= 0 || j.Took < time.Second {
		return ""
	}
	return look.Bytes(int64(float64(j.Done)/j.Took.Seconds())) + "/s"
}

// Time formats the job's duration so far.
func (j jobView) Time() string {
	if j.Took < time.Second {
		return textUnderSecond
	}
	return j.Took.Round(time.Second).String()
}

// Icon returns the name of the icon for the job's kind.
func (j jobView) Icon() string {
	switch j.Kind {
	case "pull":
		return "down"
	case "push":
		return "up"
	case "build":
		return "camera"
	case "sanitize", "rules":
		return "mask"
	}
	return "load"
}

// view returns the job's view. The caller must hold mu.
func (js *jobs) view(j *job) jobView {
	v := jobView{
		ID: j.id, Revision: j.revision, Kind: j.kind, Title: j.title, State: j.state, Phase: j.event.Phase,
		Done: j.event.Done, Total: j.event.Total, Result: j.result, Problem: problemOf(j.problem),
		Snapshot: j.snapshot, Again: j.again, Started: j.started, Took: j.ended.Sub(j.started),
		Log: slices.Clone(j.log),
	}
	if j.state == jobRunning {
		v.Took = js.now().Sub(j.started)
	}
	return v
}

// list returns the jobs for which keep returns true, newest first.
func (js *jobs) list(keep func(*job) bool) []jobView {
	js.mu.Lock()
	defer js.mu.Unlock()
	var views []jobView
	for _, j := range js.all {
		if keep(j) {
			views = append(views, js.view(j))
		}
	}
	return views
}

func (js *jobs) running() int {
	return len(js.list(func(j *job) bool { return j.state == jobRunning }))
}

// dock returns the jobs in the corner of every page: running jobs, failed or interrupted jobs that
// were not dismissed, and the newest of the other jobs.
func (s *Server) dock() []jobView {
	ended := false
	return s.jobs.list(func(j *job) bool {
		if j.dismissed || j.state == jobRunning || j.state == jobFailed || j.state == jobInterrupted {
			return !j.dismissed
		}
		first := !ended
		ended = true
		return first
	})
}

// jobsData is the data of jobs.html.
type jobsData struct {
	look.Page
	Jobs []jobView
}

func (s *Server) jobsPage(w http.ResponseWriter, r *http.Request) error {
	data := jobsData{Page: s.page(titleJobs, "/jobs"), Jobs: s.jobs.list(func(*job) bool { return true })}
	for i := range data.Jobs {
		data.Jobs[i].Full = true
	}
	return s.show(w, r, "jobs.html", "main", data)
}

func (s *Server) cancelJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	if err := s.jobs.stopOne(id); err != nil {
		return err
	}
	return s.done(w, r, "jobs.html", "nothing", nil)
}

func (s *Server) dismissJob(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}
	s.jobs.dismiss(id)
	return s.done(w, r, "jobs.html", "nothing", nil)
}

func jobID(r *http.Request) (int, error) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		return 0, errNoJob(strconv.Quote(r.PathValue("id")))
	}
	return id, nil
}

// eventPause is the minimum interval between two messages of an event stream.
const eventPause = 100 * time.Millisecond

// events streams changed jobs as page fragments, beginning with those in the corner of the pages,
// which may have changed since the page was made. The Jobs page sends the parameter full, and its
// fragments include the log. When a job has ended, events also sends the event "listing", because
// the list of snapshots may have changed.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	full := r.URL.Query().Get("full") != ""
	watch, done := s.jobs.watch()
	defer done()
	fmt.Fprint(w, ": ready\n\n")
	for _, view := range slices.Backward(s.dock()) { // a page puts each new job before the others
		view.Full = full
		s.sendJob(w, view)
	}
	pause := time.NewTicker(eventPause)
	defer pause.Stop()
	for {
		if err := out.Flush(); err != nil {
			return nil // the browser disconnected
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-watch.wake:
		}
		ids, news := s.jobs.changes(watch)
		changed := s.jobs.list(func(j *job) bool { return slices.Contains(ids, j.id) })
		for _, view := range slices.Backward(changed) {
			view.Full = full
			s.sendJob(w, view)
			if view.State != jobRunning {
				sendEvent(w, "listing", []byte("changed"))
			}
		}
		for _, name := range news {
			sendEvent(w, name, []byte("changed"))
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-pause.C:
		}
	}
}

func (s *Server) sendJob(w http.ResponseWriter, view jobView) {
	var buf bytes.Buffer
	if err := s.views.Write(&buf, "jobs.html", "job", view); err != nil {
		s.o.Log.Error("a job could not be shown", "err", err)
		return
	}
	sendEvent(w, "job", buf.Bytes())
}

func sendEvent(w http.ResponseWriter, name string, data []byte) {
	fmt.Fprintf(w, "event: %s\n", name)
	for line := range bytes.Lines(data) {
		fmt.Fprintf(w, "data: %s\n", bytes.TrimRight(line, "\r\n"))
	}
	fmt.Fprint(w, "\n")
}
