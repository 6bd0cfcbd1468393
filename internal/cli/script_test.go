package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	_ "time/tzdata" // scripts set TZ, and not every machine has the zones

	"github.com/rogpeppe/go-internal/testscript"

	"snap"
	"snap/internal/local"
	"snap/internal/operator"
	"snap/internal/servertest"
)

// patientMain is like [Main], for tests: no request is slow and no work is given up because the
// machine is busy.
func patientMain(ctx context.Context, args []string, stdio IO, env func(string) string) int {
	return run(ctx, args, stdio, env, equalTimeouts(servertest.Patience))
}

// TestMain lets the scripts run both programs as processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(scripted{m}, map[string]func(){
		"snapcli": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			context.AfterFunc(ctx, stop)
			os.Exit(patientMain(ctx, os.Args[1:], Stdio(), os.Getenv))
		},
		"snapcloud": func() {
			os.Exit(operator.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr, os.Environ(), "test"))
		},
	})
}

// scripted runs the tests of this package.
type scripted struct{ *testing.M }

// Run runs the tests. With the race detector, the snapcli that scripts find in PATH is one without
// the detector: it starts in a tenth of the processor time, and scripts start it more than a
// thousand times (docs/decisions/0290).
func (s scripted) Run() int {
	if signal.Ignored(os.Interrupt) { // in the background of a script; then no shell here could trap it
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	if !servertest.Raced() {
		return s.M.Run()
	}
	dir, err := os.MkdirTemp("", "snapcli-for-scripts-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// With the flags of `make build`, only linking takes time.
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X snap/internal/cli.sameTimeout="+servertest.Patience.String(),
		"-o", dir+string(filepath.Separator), "snap/cmd/snapcli")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	return s.M.Run()
}

// TestScripts runs the command line as people and scripts do, and checks its output and exit codes.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/script", nil)
}

func runScripts(t *testing.T, dir string, setup func(*testscript.Env) error) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("SNAPCLI_CONFIG_DIR", filepath.Join(e.WorkDir, "config"))
			e.Setenv("SNAPCLI_DATA_DIR", filepath.Join(e.WorkDir, "data"))
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise the race detector delays each program by a second
			e.Setenv("GOGC", "400")                 // programs that end at once need not collect garbage
			if setup == nil {
				return nil
			}
			return setup(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":       codeCommand,
			"prepare":    prepareCommand,
			"capture":    captureCommand,
			"answers":    answersCommand,
			"as":         asCommand,
			"secretfree": secretfreeCommand,
			"example":    exampleCommand,
			"sqlite":     sqliteCommand,
			"damage":     damageCommand,
			"originate":  originateCommand,
			"login":      loginCommand,
			"pushed":     pushedCommand,
			"block":      blockCommand,
		},
	})
}

// prepareCommand runs snapcli in the process of the test, for the preparation of a script, because
// starting a program takes longer than most commands.
//
//	prepare build shop --quiet
func prepareCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: prepare ARGUMENT...")
	}
	stdio := IO{In: strings.NewReader(""), Out: ts.Stdout(), Err: ts.Stderr(), Width: func() int { return 0 }}
	if code := patientMain(context.Background(), args, stdio, ts.Getenv); code != snap.ExitOK {
		ts.Fatalf("exit code %d", code)
	}
}

// originateCommand changes the recorded origin of the only snapshot, as a pull would:
//
//	originate theirs globex https://cloud.example
func originateCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: originate ORIGIN [ORGANIZATION SERVICE]")
	}
	files, err := filepath.Glob(ts.MkAbs("data/snapshots/*/*.json"))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("there are %d records", len(files))
	}
	text, err := os.ReadFile(files[0])
	ts.Check(err)
	var s local.Snapshot
	ts.Check(json.Unmarshal(text, &s))
	s.From = local.Provenance{Origin: local.Origin(args[0])}
	if len(args) == 3 {
		s.From.Organization, s.From.Service = args[1], args[2]
	}
	text, err = json.Marshal(s)
	ts.Check(err)
	ts.Check(os.WriteFile(files[0], text, 0o600))
}

// codeCommand runs a command that must end with an exit code:
//
//	code 3 snapcli targets show nothing
func codeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// answer is one canned response of a server that behaves unlike any real one.
type answer struct {
	Request string          `json:"request"` // such as GET /api/v1/agents/me
	Status  int             `json:"status"`
	Body    json.RawMessage `json:"body"`
	Text    string          `json:"text"` // sent instead of Body; need not be JSON
}

// answersCommand starts a server with canned responses and sets $CLOUD to its URL:
//
//	answers file.json
func answersCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answers FILE")
	}
	var list []answer
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &list))
	mux := http.NewServeMux()
	for _, a := range list {
		mux.HandleFunc(a.Request, func(w http.ResponseWriter, _ *http.Request) {
			if a.Status >= 400 && a.Text == "" {
				w.Header().Set("Content-Type", "application/problem+json")
			}
			if a.Status != 0 {
				w.WriteHeader(a.Status)
			}
			if a.Text != "" {
				_, _ = w.Write([]byte(a.Text))
				return
			}
			_, _ = w.Write(a.Body)
		})
	}
	server := httptest.NewServer(mux)
	ts.Defer(server.Close)
	ts.Setenv("CLOUD", server.URL)
	ts.Setenv("SNAPCLI_CLOUD__URL", server.URL)
}

// captureCommand finds a pattern in the last standard output and stores its group in a variable:
//
//	capture ID '"id": "(\d+)"'
func captureCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VARIABLE PATTERN")
	}
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("standard output has no %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// damageCommand harms the one file that a pattern finds:
//
//	damage flip 'data/snapshots/shop/*.snap'    changes a byte in the middle
//	damage cut  'data/snapshots/shop/*.snap'    drops the second half
func damageCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage flip|cut PATTERN")
	}
	files, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s finds %d files", args[1], len(files))
	}
	data, err := os.ReadFile(files[0])
	ts.Check(err)
	if args[0] == "cut" {
		data = data[:len(data)/2]
	} else {
		data[len(data)/2] ^= 0xff
	}
	ts.Check(os.WriteFile(files[0], data, 0o600))
}
