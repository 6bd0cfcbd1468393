package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/local"
)

func (a *app) localVerifyCommand() *cobra.Command {
	var identity []string
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Read snapshot files and check every checksum in them",
		Long: `Verify reads whole snapshot files and checks every checksum: of the files you
name, or of all on this machine. It fails when one is damaged. It checks an
encrypted file as a whole, and its content too when an identity on this machine
opens it.`,
		Example: examples("verify one", "snapcli snapshots verify shop-20261121T011600Z", "verify all",
			"snapcli snapshots verify"),
		ValidArgsFunction: a.completeLocal,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				list, err := agent.Snapshots("")
				if err != nil {
					return err
				}
				for _, s := range list {
					args = append(args, s.Name)
				}
			}
			return a.verify(cmd.Context(), agent, args, identity)
		},
	}
	identityFlag(cmd, &identity)
	a.jsonFlag(cmd)
	return cmd
}

// sound is the JSON output of verify for a file that passed.
type sound struct {
	Name   string      `json:"name"`
	Type   snap.Type   `json:"type"`
	Engine snap.Engine `json:"engine"`
	Tables int         `json:"tables" doc:"0 when it is encrypted and no identity opened it"`

	Encrypted int  `json:"encrypted,omitempty" doc:"to how many recipients"`
	Inside    bool `json:"inside" doc:"every checksum was checked; false when it is encrypted and no identity opened it, so that only the file's and the encrypted part's were"`
}

// sealedSoundness describes how much of an encrypted file was checked.
func sealedSoundness(v local.Verified) string {
	said := encryptedTo(", ", v.Encrypted)
	if !v.Inside {
		said += "; its content was not checked; for that, use --identity"
	}
	return said
}

func (a *app) verify(ctx context.Context, agent *local.Agent, names, identity []string) error {
	var failed []error
	good := []sound{}
	for _, name := range names {
		report, end := a.progress()
		v, err := agent.Verify(ctx, name, report, identity...)
		end()
		if err != nil {
			failed = append(failed, named(err, name, len(names)))
			continue
		}
		m := v.Manifest
		good = append(good, sound{name, m.Type, m.Engine, len(m.Tables), v.Encrypted, v.Inside})
		if !a.flags.json {
			a.done(name, "%s is intact: %s, %s%s%s", name, string(m.Type), string(m.Engine), tablesOf(len(m.Tables)),
				sealedSoundness(v))
		}
	}
	if a.flags.json {
		if err := a.printJSON(good); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}
