package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"snap/api"
)

// driveEnv holds an order. It makes the test program send requests to a service.
const driveEnv = "SNAP_LOAD_DRIVE"

// order says which service to send requests to, how long, and by how many workers at once.
type order struct {
	URLs    []string
	People  []person // in turn
	Seconds int
	Workers int
}

func TestMain(m *testing.M) {
	if text := os.Getenv(driveEnv); text != "" {
		if err := drive(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The kinds of requests, and how many of a hundred are of each kind.
var mix = []struct {
	kind   string
	weight int
	do     func(*worker) error
}{
	{"list", 40, (*worker).list},
	{"check", 25, (*worker).check},
	{"pull", 10, (*worker).pull},
	{"push begin", 5, (*worker).push},
	{"share, unshare", 15, (*worker).share},
	{"refresh", 5, (*worker).refresh},
}

func kinds() (all []string) {
	for _, m := range mix {
		all = append(all, m.kind)
	}
	return all
}

// drive lets every worker send one request after the other, to all replicas in turn, and prints a
// summary of the response times.
func drive(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Workers}, Timeout: 30 * time.Second}
	var workers []*worker
	for i := range o.Workers {
		w := &worker{o: o, client: client, person: o.People[i%len(o.People)],
			random: rand.New(rand.NewPCG(uint64(i), 7)),
			took:   map[string][]time.Duration{}, failed: map[string]int{}}
		if err := w.begin(); err != nil {
			return fmt.Errorf("sign %s in: %w", w.person.Email, err)
		}
		workers = append(workers, w)
	}
	var wg sync.WaitGroup
	began := time.Now()
	until := began.Add(time.Duration(o.Seconds) * time.Second)
	for _, w := range workers {
		wg.Go(func() {
			for time.Now().Before(until) {
				w.next()
			}
		})
	}
	wg.Wait()
	r := result{Seconds: time.Since(began).Seconds(), Kinds: map[string]kindResult{}}
	var all []time.Duration
	failed := 0
	for _, kind := range kinds() {
		var took []time.Duration
		lost := 0
		for _, w := range workers {
			took = append(took, w.took[kind]...)
			lost += w.failed[kind]
		}
		all, failed = append(all, took...), failed+lost
		r.Kinds[kind] = summary(took, lost)
	}
	r.Kinds["all"] = summary(all, failed)
	return json.NewEncoder(os.Stdout).Encode(r)
}

// worker is one person or program that sends requests.
type worker struct {
	o      order
	client *http.Client
	random *rand.Rand
	person person
	turn   int

	token, renew string
	seen         []string // snapshots
	own          string   // one that may be shared
	shared       bool
	pushed       int

	took   map[string][]time.Duration
	failed map[string]int
}

// next sends one request, chosen by the mix.
func (w *worker) next() {
	at := w.random.IntN(100)
	for _, m := range mix {
		if at -= m.weight; at >= 0 {
			continue
		}
		began := time.Now()
		if err := m.do(w); err != nil {
			if w.failed[m.kind]++; w.failed[m.kind] == 1 {
				fmt.Fprintln(os.Stderr, m.kind+":", err)
			}
			return
		}
		w.took[m.kind] = append(w.took[m.kind], time.Since(began))
		return
	}
}

func (w *worker) any() string { return w.seen[w.random.IntN(len(w.seen))] }

func (w *worker) list() error {
	return w.call(http.MethodGet, "/snapshots?limit=50", nil, nil)
}

func (w *worker) check() error { return w.call(http.MethodGet, "/snapshots/"+w.any(), nil, nil) }

func (w *worker) pull() error {
	return w.call(http.MethodPost, "/snapshots/"+w.any()+"/pull", nil, nil)
}

func (w *worker) push() error {
	w.pushed++
	return w.call(http.MethodPost, "/snapshots", map[string]any{
		"target": "target1", "name": fmt.Sprintf("load-%d-%d-%d", os.Getpid(), w.random.Int64(), w.pushed),
		"type": "snapshot", "engine": "sqlite",
		"size": 1000, "sha256": fmt.Sprintf("%064x", w.random.Uint64()),
	}, nil)
}

func (w *worker) share() error {
	method := http.MethodPost
	if w.shared {
		method = http.MethodDelete
	}
	w.shared = !w.shared
	if w.shared && w.random.IntN(2) == 0 {
		return w.call(http.MethodPost, "/snapshots/"+w.own+"/shares",
			map[string]any{"org_wide": true, "expires_in": 3600}, nil)
	}
	return w.call(method, "/snapshots/"+w.own+"/share", nil, nil)
}

func (w *worker) refresh() error {
	return w.tokens(url.Values{"grant_type": {"refresh_token"}, "client_id": {"snapcli"}, "refresh_token": {w.renew}})
}

// base is the next replica.
func (w *worker) base() string {
	w.turn++
	return w.o.URLs[w.turn%len(w.o.URLs)]
}

func (w *worker) call(method, path string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = strings.NewReader(string(text))
	}
	req, err := http.NewRequestWithContext(context.Background(), method, w.base()+api.MountUser+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return w.send(w.client, req, out)
}

func (w *worker) send(client *http.Client, req *http.Request, out any) error {
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: status %d: %.200s", req.Method, req.URL.Path, res.StatusCode, text)
	}
	if page, ok := out.(*string); ok {
		*page = string(text)
		return nil
	}
	if out != nil {
		return json.Unmarshal(text, out)
	}
	return nil
}

func (w *worker) tokens(form url.Values) error {
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	if err := w.form(w.client, w.base()+"/auth/token", form, &got); err != nil {
		return err
	}
	w.token, w.renew = got.Access, got.Refresh
	return nil
}

func (w *worker) form(client *http.Client, to string, form url.Values, out any) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", public)
	return w.send(client, req, out)
}

var csrf = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)

// begin signs in as a person does (RFC 8628), and lists the snapshots that the worker uses.
func (w *worker) begin() error {
	base := w.o.URLs[0]
	var device struct {
		Device string `json:"device_code"`
		User   string `json:"user_code"`
	}
	if err := w.form(w.client, base+"/auth/device_authorization",
		url.Values{"client_id": {"snapcli"}, "scope": {"openid offline_access"}}, &device); err != nil {
		return err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	submit := func(page, action string, form url.Values) error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, base+page, nil)
		if err != nil {
			return err
		}
		var text string
		if err := w.send(browser, req, &text); err != nil {
			return err
		}
		found := csrf.FindStringSubmatch(text)
		if found == nil {
			return errors.New(page + " has no form")
		}
		form.Set("csrf_token", found[1])
		err = w.form(browser, base+action, form, new(string))
		if err != nil && strings.Contains(err.Error(), "status 303") {
			return nil
		}
		return err
	}
	err = submit("/auth/signin?next=/auth/device", "/auth/signin",
		url.Values{"next": {"/auth/device"}, "organization": {w.person.Org}, "email": {w.person.Email},
			"password": {"secret"}})
	if err == nil {
		err = submit("/auth/device/confirm?user_code="+device.User, "/auth/device/confirm",
			url.Values{"user_code": {device.User}, "decision": {"approve"}})
	}
	if err == nil {
		err = w.tokens(url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
			"client_id":   {"snapcli"},
			"device_code": {device.Device}})
	}
	if err != nil {
		return err
	}
	return w.readOne()
}

// readOne lists the snapshots that the worker may see, and chooses one that it can share.
func (w *worker) readOne() error {
	for _, filter := range []string{"all", "mine"} {
		w.own = ""
		var page struct {
			Items []struct {
				ID     string `json:"id"`
				Shared bool   `json:"shared"`
			} `json:"items"`
		}
		if err := w.call(http.MethodGet, "/snapshots?limit=200&filter="+filter, nil, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			w.seen = append(w.seen, item.ID)
			if !item.Shared && (w.own == "" || w.random.IntN(10) == 0) { // ends as one of the last listing
				w.own = item.ID
			}
		}
	}
	if w.own == "" {
		return errors.New("there is nothing that could be shared")
	}
	return nil
}
