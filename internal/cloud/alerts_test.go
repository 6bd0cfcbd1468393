package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// Every counter that an alert reads exists with the value 0 before anything happens, with each of
// the labels that the alert selects. Otherwise the first event of its kind would raise no alert.
func TestAlertsCountFromTheStart(t *testing.T) {
	t.Parallel()
	storage := fakeS3(t)
	c := cloudtest.Start(t, cloudtest.Options{BlobURL: "s3://k:s@snapshots?endpoint=" + storage.URL})
	said := metrics(t, c)
	rules, err := os.ReadFile(filepath.Join(servertest.Root(t), "deploy/prometheus/alerts.yaml"))
	must(t, err)
	counters := regexp.MustCompile(`(snapcloud_\w+_total)(?:\{([^}]*)\})?`).FindAllStringSubmatch(string(rules), -1)
	if len(counters) < 8 {
		t.Fatalf("only %d counters in the rules", len(counters))
	}
	if want := `route="POST /api/v1/agents/snapshots/{id}/pull",status="500"} 0`; !strings.Contains(said, want) {
		t.Errorf("there is no series of %s", want)
	}
	for _, counter := range counters {
		for _, labels := range alternatives(counter[2]) {
			pattern := `(?m)^` + counter[1]
			for _, label := range labels {
				pattern += `(?:\{|.*,)` + label // labels are sorted, as the rules write them
			}
			if !regexp.MustCompile(pattern).MatchString(said) {
				t.Errorf("there is no series %s with %q", counter[1], labels)
			}
		}
	}
}

// alternatives returns every combination of labels that a selector asks for, as regular
// expressions.
func alternatives(selector string) [][]string {
	all := [][]string{nil}
	for _, m := range regexp.MustCompile(`(\w+)=(~?)"([^"]*)"`).FindAllStringSubmatch(selector, -1) {
		values := []string{regexp.QuoteMeta(m[3])}
		if m[2] == "~" {
			values = strings.Split(m[3], "|")
		}
		var more [][]string
		for _, labels := range all {
			for _, value := range values {
				more = append(more, append(append([]string{}, labels...), m[1]+`="`+value+`"`))
			}
		}
		all = more
	}
	return all
}

// fakeS3 is a bucket that exists, but does not serve its objects.
func fakeS3(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// The last success of background work counts from any process, even from one that has ended.
func TestJobTimesOutliveProcesses(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
		clock := clocktest.New(start)
		o.Clock = clock
		c := cloudtest.Start(t, o)
		fine := func(context.Context) error { return nil }
		must(t, c.Service.BeginJobs(t.Context()))
		last := func(s *cloud.Service, work string) string {
			recorder := httptest.NewRecorder()
			s.Private().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			return regexp.MustCompile(`success_timestamp_seconds\{work="` + work + `"\} (\S+)`).
				FindStringSubmatch(recorder.Body.String() + `success_timestamp_seconds{work="` + work + `"} none`)[1]
		}
		began := last(c.Service, "collect")
		clock.Advance(time.Hour)
		must(t, c.Service.Ran(t.Context(), "collect", fine))
		clock.Advance(time.Hour)
		failed := c.Service.Ran(t.Context(), "index", func(context.Context) error { return errors.New("no") })
		done := last(c.Service, "collect")
		if failed == nil || began == "none" || done == began || last(c.Service, "index") != began {
			t.Errorf("it began at %s, and collect was done at %s, index at %s", began, done, last(c.Service, "index"))
		}
		next, err := cloud.New(t.Context(), c.Config, cloud.Options{Log: slog.New(slog.DiscardHandler), Now: clock.Now})
		must(t, err)
		defer next.Close()
		must(t, next.BeginJobs(t.Context()))
		if got := last(next, "collect"); got != done {
			t.Errorf("after the replacement the time is %s and was %s", got, done)
		}
	})
}

// An outage is one line when it begins, one for each minute while it lasts, and one when it is
// over, however many requests and probes notice it.
func TestOutagesAreFewLines(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() || r.Method == http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer storage.Close()
	clock := clocktest.New(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC))
	var log lockedBuffer
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock, Log: &log,
		BlobURL: "s3://k:s@snapshots?endpoint=" + storage.URL})
	probe := func() {
		for range 20 {
			exchange(t, http.MethodGet, c.URL+"/readyz", "")
			clock.Advance(time.Second)
		}
	}
	probe()
	away.Store(true)
	for range 5 {
		probe()
		clock.Advance(10 * time.Second)
	}
	away.Store(false)
	probe()
	lines := map[string]int{}
	for _, m := range regexp.MustCompile(`level=(\w+) msg="?([^"]*?)"? `+
		`what=storage`).FindAllStringSubmatch(log.String(), -1) {
		lines[m[1]+" "+m[2]]++
	}
	want := map[string]int{"WARN a part of the service fails and is tried again": 1,
		"WARN a part of the service still fails": 2, "INFO a part of the service works again": 1}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("the lines are %v, want %v", lines, want)
	}
}

// A bucket that cannot be used is named in the log with the reason that the object store gives, and
// a name that no bucket can have ends the start.
func TestImpossibleBucketsNameTheCause(t *testing.T) {
	t.Parallel()
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>`))
	}))
	defer storage.Close()
	var log lockedBuffer
	config := cloud.Config{PublicURL: "http://127.0.0.1:1", Listen: "127.0.0.1:1", DataDir: t.TempDir(),
		Blob: cloud.Blob{URL: "s3://k:s@snapshots?endpoint=" + storage.URL}}
	s, err := cloud.New(t.Context(), config, cloud.Options{Log: slog.New(cloud.LogHandler(cloud.Log{}, &log))})
	must(t, err)
	defer s.Close()
	if !strings.Contains(log.String(), "InvalidAccessKeyId") {
		t.Errorf("the log does not name the cause: %s", log.String())
	}
	config.Blob.URL = "s3://k:s@My_Bucket?endpoint=" + storage.URL
	if _, err := cloud.New(t.Context(), config, cloud.Options{Log: slog.New(slog.DiscardHandler)}); err == nil ||
		!strings.Contains(err.Error(), `"My_Bucket" cannot be the name of a bucket`) {
		t.Errorf("a name that no bucket can have: %v", err)
	}
}
