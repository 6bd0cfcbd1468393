package cli

import (
	"strings"

	"snap/internal/local"
)

// reachView describes how the databases of a target are reached. Arguments of commands are hidden,
// because they may be secret.
type reachView struct {
	Via                        string `json:"via,omitempty" doc:"SSH server through which the source is reached"`
	PasswordCommand            string `json:"password_command,omitempty" doc:"prints the source's password"`
	DestinationVia             string `json:"destination_via,omitempty" doc:"SSH server on the way to the destination"`
	DestinationPasswordCommand string `json:"destination_password_command,omitempty" doc:"prints the server's password"`
	ScratchVia                 string `json:"scratch_via,omitempty" doc:"SSH server on the way to the scratch server"`
	ScratchPasswordCommand     string `json:"scratch_password_command,omitempty" doc:"prints the server's password"`
}

func viewReach(t local.Target) reachView {
	return reachView{t.Via, programOf(t.PasswordCommand), t.DestinationVia, programOf(t.DestinationPasswordCommand),
		t.ScratchVia, programOf(t.ScratchPasswordCommand)}
}

// programOf returns a command without its arguments.
func programOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return words[0] + " ..."
}

// settings returns the view as keys and values.
func (v reachView) settings() [][2]string {
	return [][2]string{{"via", v.Via}, {"password_command", v.PasswordCommand}, {"destination_via", v.DestinationVia},
		{"destination_password_command", v.DestinationPasswordCommand}, {"scratch_via", v.ScratchVia},
		{"scratch_password_command", v.ScratchPasswordCommand}}
}
