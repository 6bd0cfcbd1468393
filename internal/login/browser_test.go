package login

import (
	"strings"
	"testing"
)

// U3: a browser is opened only where a person can see it.
func TestWhereABrowserIsOpened(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, env, os string
		file          string
		pipe          bool
		want          bool
	}{
		{name: "a desktop", env: "DISPLAY=:0", os: "linux", want: true},
		{name: "a Wayland desktop", env: "WAYLAND_DISPLAY=wayland-0", os: "linux", want: true},
		{name: "macOS", os: "darwin", want: true},
		{name: "Windows", os: "windows", want: true},
		{name: "WSL", env: "WSL_DISTRO_NAME=Debian", os: "linux", want: true},
		{name: "a pipe", env: "DISPLAY=:0", os: "linux", pipe: true},
		{name: "no display", os: "linux"},
		{name: "ssh", env: "DISPLAY=:10 SSH_CONNECTION=1.2.3.4", os: "linux"},
		{name: "ssh to macOS", env: "SSH_TTY=/dev/ttys001", os: "darwin"},
		{name: "a pipeline", env: "DISPLAY=:0 CI=true", os: "linux"},
		{name: "a container", env: "DISPLAY=:0", os: "linux", file: "/.dockerenv"},
		{name: "podman", env: "DISPLAY=:0", os: "linux", file: "/run/.containerenv"},
		{name: "a container that names a browser", env: "BROWSER=/vscode/browser.sh", os: "linux", file: "/.dockerenv",
			want: true},
		{name: "lynx", env: "DISPLAY=:0 BROWSER=/usr/bin/lynx", os: "linux"},
		{name: "w3m", env: "DISPLAY=:0 BROWSER=w3m", os: "linux"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := machine{env: environment(tc.env), os: tc.os, terminal: !tc.pipe,
				exists: func(path string) bool { return path == tc.file }}
			if got, why := p.browser(); got != tc.want || got == (why != "") {
				t.Errorf("browser: %v, because %q", got, why)
			}
		})
	}
}

func environment(text string) func(string) string {
	values := map[string]string{}
	for _, pair := range strings.Fields(text) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

// A4: only web pages are opened, and a URL is never parsed as a flag.
func TestOnlyWebPagesAreOpened(t *testing.T) {
	t.Parallel()
	o := opener{env: environment("BROWSER=true")}
	for _, bad := range []string{"file:///etc/passwd", "-flag", "javascript:alert(1)", "http://evil.test/",
		"https://user@host/", "", "calc.exe"} {
		if err := o.open(bad); err == nil {
			t.Errorf("%q was opened", bad)
		}
	}
}
