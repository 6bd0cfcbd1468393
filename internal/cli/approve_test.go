package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	codeLine = regexp.MustCompile(`(?:^\s+|"user_code":")([A-Z]{4}-[A-Z]{4})(?:$|")`)
	csrf     = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)
)

// loginCommand runs `snapcli login`. As soon as the code for the browser is printed, it approves or
// denies the code as a person with a browser would, or interrupts the command (ignore). The
// command's output is left in the files login.out and login.err:
//
//	login EXIT-CODE approve|deny|ignore alice@acme.test [flags...]
func loginCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: login EXIT-CODE approve|deny|ignore EMAIL [flags...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	snapcli, err := exec.LookPath("snapcli")
	if err != nil {
		snapcli = lookIn(ts.Getenv("PATH"), "snapcli")
	}
	var out, errs bytes.Buffer
	run := exec.Command(snapcli, append([]string{"login"}, args[3:]...)...)
	for _, name := range []string{"PATH", "HOME", "TZ", "GORACE", "SNAPCLI_CONFIG_DIR", "SNAPCLI_DATA_DIR",
		"SNAPCLI_CLOUD__URL", "SNAPCLI_CLOUD__API_KEY", "SNAPCLI_ACCOUNT"} {
		run.Env = append(run.Env, name+"="+ts.Getenv(name))
	}
	said, writer := io.Pipe()
	run.Stdout, run.Stderr = io.MultiWriter(&out, writer), io.MultiWriter(&errs, writer)
	ts.Check(run.Start())
	go func() {
		_ = run.Wait() // the exit code is checked below
		writer.Close()
	}()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		m := codeLine.FindStringSubmatch(lines.Text())
		switch {
		case m == nil:
		case args[1] == "ignore":
			ts.Check(run.Process.Signal(os.Interrupt))
		default:
			ts.Check(decide(context.Background(), ts.Getenv("CLOUD"), args[2], m[1], args[1]))
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("login.out"), out.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("login.err"), errs.Bytes(), 0o600))
	ts.Logf("[login]\n%s%s", out.String(), errs.String())
	if got := run.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func lookIn(path, program string) string {
	for _, dir := range strings.Split(path, string(os.PathListSeparator)) {
		if _, err := os.Stat(dir + "/" + program); err == nil {
			return dir + "/" + program
		}
	}
	return program
}

// decide signs in at the auth service as a person and approves or denies.
func decide(ctx context.Context, cloud, email, code, decision string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	b := pageBrowser{&http.Client{Jar: jar}, cloud}
	name, org, _ := strings.Cut(strings.TrimSuffix(email, ".test"), "@")
	if err := b.submit(ctx, "/auth/signin?next=/auth/device", "/auth/signin", url.Values{
		"next": {"/auth/device"}, "organization": {org}, "email": {email}, "password": {name + "-password"},
	}); err != nil {
		return err
	}
	return b.submit(ctx, "/auth/device/confirm?user_code="+code, "/auth/device/confirm",
		url.Values{"user_code": {code}, "decision": {decision}})
}

type pageBrowser struct {
	client *http.Client
	base   string
}

// submit opens a page, takes the token of its form, and sends the form.
func (b pageBrowser) submit(ctx context.Context, page, action string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+page, nil)
	if err != nil {
		return err
	}
	body, err := b.send(req)
	if err != nil {
		return err
	}
	token := csrf.FindStringSubmatch(body)
	if token == nil {
		return fmt.Errorf("%s has no form: %s", page, body)
	}
	form.Set("csrf_token", token[1])
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+action, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	post.Header.Set("Origin", b.base)
	_, err = b.send(post)
	return err
}

func (b pageBrowser) send(req *http.Request) (string, error) {
	res, err := b.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", req.URL.Path, res.StatusCode, body)
	}
	return string(body), err
}
