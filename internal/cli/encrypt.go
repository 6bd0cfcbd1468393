package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"snap"
	"snap/internal/local"
)

// encryptFlags adds the flags that select who can read the new snapshot.
func encryptFlags(cmd *cobra.Command, e *local.Encryption) {
	cmd.Flags().StringArrayVar(&e.To, "encrypt-to", nil,
		"recipient: a public key, or a file of them; can be repeated (default: the target's)")
	cmd.Flags().BoolVar(&e.None, "no-encrypt", false, "write the snapshot unencrypted, whatever is configured")
	cmd.MarkFlagsMutuallyExclusive("encrypt-to", "no-encrypt")
}

// identityFlag adds the flag for the private keys that decrypt a snapshot.
func identityFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVar(files, "identity", nil,
		"age identity file or SSH key that opens an encrypted snapshot; can be repeated (default: those of the "+
			"configuration)")
	_ = cmd.MarkFlagFilename("identity")
}

// encryptedTo says to how many recipients a snapshot is encrypted, preceded by the argument before.
// It returns "" if the snapshot is not encrypted.
func encryptedTo(before string, recipients int) string {
	if recipients == 0 {
		return ""
	}
	return before + "encrypted to " + snap.Plural(recipients, "recipient", "recipients")
}

// passphrase returns a function that prompts for the passphrase of a private key without echoing
// it. It returns nil if nobody can be asked.
func (a *app) passphrase() func(path string) ([]byte, error) {
	in, ok := a.io.In.(interface{ Fd() uintptr })
	if !ok || !a.canAsk() {
		return nil
	}
	return func(path string) ([]byte, error) {
		phrase, err := a.readHidden(int(in.Fd()), fmt.Sprintf("Passphrase of %s: ", snap.CleanText(path)))
		if err != nil || len(phrase) == 0 {
			return nil, &snap.Error{Code: snap.CodeInterrupted, Detail: "no passphrase was given", Cause: err}
		}
		return phrase, nil
	}
}

// readHidden reads a line from a terminal without echoing it. Ctrl-C arrives as a character in this
// mode; readHidden then returns [io.EOF] at once. It also returns when the run ends because of a
// signal, so that a second signal cannot leave the terminal without its echo.
func (a *app) readHidden(fd int, prompt string) ([]byte, error) {
	usual, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("hide the input: %w", err)
	}
	defer func() { _ = term.Restore(fd, usual) }() // if this fails, nothing else can be done
	var line string
	err = a.interruptible(func(context.Context) (err error) {
		line, err = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{a.io.In, a.io.Err}, "").ReadPassword(prompt)
		return err
	})(a.ctx)
	if err != nil && a.ctx.Err() == nil {
		a.write("\r\n")
	}
	if err != nil {
		return nil, err // and not line, which the question may still write to
	}
	return []byte(line), nil
}

// maskIdentities lists the paths of private keys, but never the keys themselves.
func maskIdentities(list []string) string {
	shown := make([]string, len(list))
	for i, entry := range list {
		if shown[i] = entry; strings.HasPrefix(entry, "AGE-SECRET-KEY-") {
			shown[i] = "xxxxx"
		}
	}
	return strings.Join(shown, ", ")
}
