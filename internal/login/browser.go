package login

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// machine describes where the user works.
type machine struct {
	env      func(string) string
	os       string
	exists   func(path string) bool
	terminal bool
}

// browser reports whether a browser can be opened here, and if not, why. A browser that the
// variable BROWSER names is trusted to work even in a container.
func (m machine) browser() (ok bool, why string) {
	set := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return m.env(name) != "" })
	}
	named := strings.TrimSpace(m.env("BROWSER"))
	if named != "" && textBrowser(strings.Fields(named)[0]) {
		return false, "BROWSER names a text browser, which would take over the terminal"
	}
	switch {
	case !m.terminal:
		return false, "this is not a terminal"
	case set("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"):
		return false, "this is a remote session"
	case set("CI"):
		return false, "this is a CI job"
	case named != "":
		return true, ""
	case set("container", "KUBERNETES_SERVICE_HOST") || m.exists("/.dockerenv") || m.exists("/run/.containerenv"):
		return false, "this is a container"
	case m.os == "linux" && !set("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "WSL_INTEROP"):
		return false, "there is no display"
	}
	return true, ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// opener opens the system's browser.
type opener struct{ env func(string) string }

// open starts a browser that is detached from this process. It ignores the browser's output and
// exit status. It opens only https URLs, and http URLs on loopback.
func (o opener) open(target string) error {
	if err := checkURL(target, "a web page"); err != nil {
		return err
	}
	argv := o.command(target)
	if argv == nil {
		return errors.New("none is installed")
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // the browser outlives the login
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// command returns the command line that opens a URL, or nil if there is none.
func (o opener) command(target string) []string {
	if chosen := strings.Fields(o.env("BROWSER")); len(chosen) > 0 {
		return append(chosen, target)
	}
	switch runtime.GOOS {
	case "darwin":
		return []string{"open", target}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", target}
	}
	candidates := [][]string{{"xdg-open", target}, {"x-www-browser", target}, {"sensible-browser", target}}
	if o.env("WSL_DISTRO_NAME") != "" || o.env("WSL_INTEROP") != "" {
		candidates = append([][]string{{"wslview", target},
			{"cmd.exe", "/c", "start", "", strings.ReplaceAll(target, "&", "^&")}}, candidates...)
	}
	for _, argv := range candidates {
		if _, err := exec.LookPath(argv[0]); err == nil {
			return argv
		}
	}
	return nil
}

// textBrowser reports whether a program is a browser that would take over the terminal.
func textBrowser(program string) bool {
	switch filepath.Base(program) {
	case "lynx", "w3m", "links", "links2", "elinks", "www-browser", "browsh":
		return true
	}
	return false
}
