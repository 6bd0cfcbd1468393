package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/local"
)

func (a *app) localVerifyCommand() *cobra.Command {
	var identity []string
	var required bool
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Read snapshot files and check every checksum in them",
		Long: `Verify reads the snapshot files that you name, or all on this machine, from
start to end and checks every checksum. It fails if a file is damaged. It checks
an encrypted file as a whole, and also its content if an identity on this
machine can decrypt it. If a file has a certificate, the certificate must belong
to the file and be signed by a known key that is not revoked; see
` + "`snapcli keys`" + `. If verify can read the file's content, the certificate must name
the rules and SQL that the file records. With --require-certificate, verify also
fails if a file has no certificate.`,
		Example: examples("verify one", "snapcli snapshots verify shop-20261121T011600Z", "verify all",
			"snapcli snapshots verify"),
		ValidArgsFunction: a.completeLocal,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			if len(args) == 0 {
				list, err := agent.Snapshots("")
				if err != nil {
					return err
				}
				for _, s := range list {
					args = append(args, s.Name)
				}
			}
			return a.verify(ctx, agent, args, required, identity)
		}),
	}
	identityFlag(cmd, &identity)
	cmd.Flags().BoolVar(&required, "require-certificate", false, "fail when a file has no certificate")
	a.jsonFlag(cmd)
	return cmd
}

// verifiedView is the JSON output of verify for a file that passed.
type verifiedView struct {
	Name   string      `json:"name"`
	Type   snap.Type   `json:"type"`
	Engine snap.Engine `json:"engine"`
	Tables int         `json:"tables" doc:"number of tables; 0 if the snapshot is encrypted and no identity opened it"`

	Encrypted int  `json:"encrypted,omitempty" doc:"number of recipients"`
	Inside    bool `json:"inside" doc:"every checksum was checked; false if no identity opened the encrypted part"`

	Certificate *certificateView `json:"certificate,omitempty" doc:"who sanitized it and how; absent if it has none"`
}

// certificateView is the JSON form of a valid certificate.
type certificateView struct {
	Key     string `json:"key" doc:"ID of the key that signed it"`
	Name    string `json:"name,omitempty" doc:"name of the key on this machine"`
	Source  string `json:"source" doc:"name of the original"`
	SHA256  string `json:"source_sha256" doc:"SHA-256 of the original's file"`
	Rules   string `json:"rules,omitempty" doc:"SHA-256 of the rules"`
	SQL     string `json:"sql,omitempty" doc:"SHA-256 of the SQL"`
	Masked  int    `json:"masked" doc:"number of columns that were masked"`
	Kept    int    `json:"kept" doc:"number of columns that were left unmasked"`
	Dropped int    `json:"dropped" doc:"number of tables whose rows were dropped"`
	Scanned int    `json:"scanned" doc:"number of original values that the leak scan searched for"`
	Tool    string `json:"tool" doc:"version of snapcli"`
}

func viewCertificate(c *local.Certified) *certificateView {
	if c == nil {
		return nil
	}
	how := c.Predicate
	v := &certificateView{Key: c.Key, Name: c.KeyName, Source: how.Source.Name, SHA256: how.Source.Digest.SHA256,
		Rules: how.Rules, SQL: how.SQL, Masked: how.Masked, Kept: how.Kept, Dropped: how.Dropped, Tool: how.Tool}
	if how.Scan != nil {
		v.Scanned = how.Scan.Values
	}
	return v
}

// signedBy describes the certificate of a file.
func signedBy(c *local.Certified) string {
	if c == nil {
		return ""
	}
	name := ""
	if c.KeyName != "" {
		name = " (" + c.KeyName + ")"
	}
	return fmt.Sprintf("; its certificate is signed by the key %s%s: %s masked, %d left unmasked", c.Key, name,
		snap.Plural(c.Predicate.Masked, "column", "columns"), c.Predicate.Kept)
}

// checkedText describes how much of an encrypted file was checked.
func checkedText(v local.Verified) string {
	text := encryptedTo(", ", v.Encrypted)
	if !v.Inside {
		text += "; its content was not checked; for that, use --identity"
	}
	return text
}

func (a *app) verify(ctx context.Context, agent *local.Agent, names []string, required bool, identity []string) error {
	var failed []error
	good := []verifiedView{}
	for _, name := range names {
		report, end := a.progress()
		v, err := agent.Verify(ctx, name, report, identity...)
		end()
		if err == nil && required && v.Certificate == nil {
			err = &snap.Error{Code: snap.CodePolicy, Detail: fmt.Sprintf("the snapshot %s has no certificate", name),
				Hint: "sanitize it on a machine with a signing key; see `snapcli keys`"}
		}
		if err != nil {
			failed = append(failed, withID(err, name, len(names)))
			continue
		}
		m := v.Manifest
		good = append(good, verifiedView{name, m.Type, m.Engine, len(m.Tables), v.Encrypted, v.Inside,
			viewCertificate(v.Certificate)})
		if !a.flags.json {
			a.done(name, "%s is intact: %s, %s%s%s%s", name, string(m.Type), string(m.Engine),
				tableCount(len(m.Tables)), checkedText(v), signedBy(v.Certificate))
		}
	}
	if a.flags.json {
		if err := a.printJSON(good); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}
