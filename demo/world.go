package main

import (
	"fmt"
	"image/color"
	"net"
	"os"
	"path/filepath"
	"strings"

	"charm.land/lipgloss/v2"
)

// person is one of the people in the story. Each has a home with their own configuration, snapshots
// and database.
type person struct {
	name, org, role, groups string
	color                   color.Color
}

func (p person) email() string    { return p.name + "@" + p.org + ".test" }
func (p person) password() string { return p.name + "-password" }
func (p person) prompt() string   { return p.name + "@" + p.org }

// The people. The operator runs the service on its own machine.
var (
	operator = person{name: "operator", org: "cloud", color: lipgloss.BrightBlack}
	alice    = person{name: "alice", org: "acme", role: "owner", color: lipgloss.Magenta}
	adam     = person{name: "adam", org: "acme", role: "admin", color: lipgloss.Blue}
	mia      = person{name: "mia", org: "acme", role: "member", groups: "eng", color: lipgloss.Yellow}
	vic      = person{name: "vic", org: "acme", role: "viewer", color: lipgloss.Cyan}
	gail     = person{name: "gail", org: "globex", role: "owner", color: lipgloss.Blue}
	gary     = person{name: "gary", org: "globex", role: "member", color: lipgloss.Green}
)

// everybody lists the people who can sign in.
func everybody() []person { return []person{alice, adam, mia, vic, gail, gary} }

// callers returns the four people who act in the story: the owner, a member of a group, a
// viewer, and a colleague in another organization.
func callers() []person { return []person{alice, mia, vic, gary} }

// world holds the files and processes of the demo.
type world struct {
	out     *screen
	bin     string // folder of the two programs
	dir     string // holds all files of the demo
	url     string // of the service
	service *process
	config  string // of the service
	log     string // of the service
}

// newWorld creates everybody's homes and the service's configuration in the folder dir. It starts
// nothing.
func newWorld(dir, bin string, out *screen) (*world, error) {
	for _, program := range []string{"snapcli", "snapcloud"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			return nil, fmt.Errorf("%s is not built; run `make demo`: %w", program, err)
		}
	}
	w := &world{out: out, bin: bin, dir: dir, config: filepath.Join(dir, "snapcloud.yaml"),
		log: filepath.Join(dir, "snapcloud.log")}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	w.url = "http://" + address
	if err := os.WriteFile(w.config, []byte(w.serviceConfig(address)), 0o600); err != nil {
		return nil, err
	}
	for _, p := range everybody() {
		if err := w.makeHome(p); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// end stops the service.
func (w *world) end() {
	if w.service != nil {
		w.service.stop()
	}
}

// freeAddress finds a loopback port that is free now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// serviceConfig returns the configuration of the demo's service: two organizations whose people
// sign in with passwords.
func (w *world) serviceConfig(address string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\npublic_url: %s\ndata_dir: %s\norganizations:\n", address, w.url,
		filepath.Join(w.dir, "cloud"))
	for _, org := range []struct{ slug, name string }{{"acme", "Acme Inc"}, {"globex", "Globex Corporation"}} {
		fmt.Fprintf(&b, "  - slug: %s\n    name: %s\n    sign_in: {type: local}\n    users:\n", org.slug, org.name)
		for _, p := range everybody() {
			if p.org == org.slug {
				fmt.Fprintf(&b, "      - {email: %s, name: %s, password: %s, role: %s, groups: [%s]}\n",
					p.email(), strings.ToUpper(p.name[:1])+p.name[1:], p.password(), p.role, p.groups)
			}
		}
	}
	return b.String()
}

// home returns the folder of a person.
func (w *world) home(p person) string { return filepath.Join(w.dir, p.name) }

// database returns the path of a person's own SQLite database.
func (w *world) database(p person) string { return filepath.Join(w.home(p), "shop.db") }

// makeHome makes a person's home with a configuration. Alice's has the shop's production database
// as its source, and Mia's has her own development database as its destination. The others' have
// only the service's address.
func (w *world) makeHome(p person) error {
	if err := os.MkdirAll(filepath.Join(w.home(p), "config"), 0o700); err != nil {
		return err
	}
	config := "cloud:\n  url: " + w.url + "\n"
	switch p {
	case alice:
		config += fmt.Sprintf("targets:\n  shop:\n    source: sqlite://%s\n    sanitize: {sql: %s}\n", w.database(p),
			w.mask())
	case mia:
		config += fmt.Sprintf("targets:\n  shop:\n    destination: sqlite://%s\n", w.database(p))
	}
	return os.WriteFile(filepath.Join(w.home(p), "config", "config.yaml"), []byte(config), 0o600)
}

// mask returns the path of Alice's SQL file that masks the shop.
func (w *world) mask() string { return filepath.Join(w.home(alice), "shop.mask.sql") }
