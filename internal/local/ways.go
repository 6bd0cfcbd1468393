package local

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"

	"snap"
	"snap/internal/reach"
)

// place is one of a target's databases in the configuration.
type place struct {
	raw     string   // URL
	via     string   // URL of an SSH server, or ""
	command []string // prints the password, or nil
	setting string   // configuration key of the command
}

// The databases of a target. Settings for one of them do not apply to the others, so that a
// password is only sent to the server that it belongs to.

func (t Target) source() place {
	return place{t.Source, t.Via, t.PasswordCommand, "targets." + t.Name + ".password_command"}
}

func (t Target) destination() place {
	return place{t.Destination, t.DestinationVia, t.DestinationPasswordCommand,
		"targets." + t.Name + ".destination_password_command"}
}

// scratch returns the server for scratch copies. It is the destination's server unless the target
// has a URL for scratch copies.
func (t Target) scratch() place {
	if t.Scratch == "" {
		return t.destination()
	}
	return place{t.Scratch, t.ScratchVia, t.ScratchPasswordCommand, "targets." + t.Name + ".scratch_password_command"}
}

// direct returns the place of a database that is reached by its URL alone.
func direct(raw string) place { return place{raw: raw} }

// way returns the route to a database.
func (a *Agent) way(p place) (*reach.Way, error) {
	via, err := expandURL(p.via, a.env)
	if err != nil {
		return nil, err
	}
	tunnel, err := a.tunnels.To(via)
	if err != nil || len(p.command) == 0 {
		return reach.NewWay(tunnel, nil), err
	}
	words, err := a.passwordCommand(p.command)
	if err != nil {
		return nil, err
	}
	return reach.NewWay(tunnel, &reach.Command{Setting: p.setting, Words: words}), nil
}

// wayFlaws adds to f the flaws in the settings for reaching the target's databases: an invalid SSH
// URL or password command, and settings for a database that the target does not have.
func (a *Agent) wayFlaws(at string, t Target, f *flaws) {
	prefixes := []string{"", "destination_", "scratch_"}
	for i, p := range []place{t.source(), t.destination(), {t.Scratch, t.ScratchVia, t.ScratchPasswordCommand, ""}} {
		via, command := at+"."+prefixes[i]+"via", at+"."+prefixes[i]+"password_command"
		if p.raw == "" && (p.via != "" || len(p.command) > 0) {
			key := via
			if p.via == "" {
				key = command
			}
			f.add(Flaw{Key: key, Doubt: true, Err: snap.Usage("it is for a database that the target does not have",
				"settings for the destination begin with destination_, and those for scratch copies with scratch_")})
		}
		f.add(a.urlFlaw(via, p.via, func(via string) error {
			_, err := a.tunnels.To(via)
			return err
		}))
		_, err := a.passwordCommand(p.command)
		f.add(Flaw{Key: command, Err: err})
	}
}

// passwordCommand returns the words of a command. The path of its program is relative to the
// configuration file. passwordCommand rejects a command whose program has no name. It also rejects
// a single string with spaces that does not name a program, because no shell would split it.
func (a *Agent) passwordCommand(words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	program := words[0]
	if strings.ContainsAny(program, `/\`) {
		program = a.relativeToConfig(program)
	}
	if words[0] == "" || len(words) == 1 && strings.Contains(words[0], " ") {
		if _, err := exec.LookPath(program); err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, snap.Usage("password_command must be a list of a program and its arguments",
				"no shell splits the command; write it as [aws, rds, generate-db-auth-token, --hostname, db.example]")
		}
	}
	return append([]string{program}, words[1:]...), nil
}
