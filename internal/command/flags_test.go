package command_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
)

// tool is a program with the kinds of commands that both programs have.
func tool(args ...string) *cobra.Command {
	root := command.Parent("tool", "", "")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(command.FlagError)
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return command.CheckFlags(c, "scope") }
	share := &cobra.Command{Use: "share ID", Args: command.ExactArgs("snapshot ID"),
		RunE: func(*cobra.Command, []string) error { return nil }}
	share.Flags().StringArray("group", nil, "")
	share.Flags().String("scope", "", "")
	share.Flags().String("org", "", "")
	share.Flags().Int("width", 0, "")
	share.MarkFlagsMutuallyExclusive("org", "group")
	key := &cobra.Command{Use: "key", Args: command.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
	key.Flags().String("kind", "", "")
	if err := key.MarkFlagRequired("kind"); err != nil {
		panic(err)
	}
	role := &cobra.Command{Use: "role", Args: command.ExactArgs("e-mail", "role"),
		RunE: func(*cobra.Command, []string) error { return nil }}
	send := &cobra.Command{Use: "send", Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error { return nil }}
	send.Flags().String("since", "", "")
	send.Flags().String("message", "", "")
	send.Flags().Int64("first", 0, "")
	send.MarkFlagsOneRequired("message", "since")
	root.PersistentFlags().String("config", "", "")
	group := command.Parent("group", "", "")
	group.AddCommand(&cobra.Command{Use: "list", RunE: command.ShowHelp})
	root.AddCommand(share, key, role, send, group)
	root.SetArgs(args)
	root.SetOut(&bytes.Buffer{})
	return root
}

// TestUsage checks that every mistake in a command line is an error of usage that names the mistake
// and says what to type.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args         []string
		detail, hint string
	}{
		{[]string{}, "", ""}, // not nil, with which Cobra reads the arguments of the test program
		{[]string{"share", "1", "--group", "eng", "--width", "0"}, "", ""},
		{[]string{"share", "1", "--scope", ""}, "", ""},
		{[]string{"share", "1", "--group", ""}, "--group is empty", "give it a value, or omit it"},
		{[]string{"share", "1", "--group="}, "--group is empty", "give it a value, or omit it"},
		{[]string{"share", "1", "--group", "eng", "--org", "x"}, "--group and --org cannot be combined",
			"see `tool share --help`"},
		{[]string{"share"}, "share needs a snapshot ID", "use it as: tool share ID [flags]"},
		{[]string{"share", "1", "2"}, `share takes one snapshot ID, but there is also "2"`,
			"use it as: tool share ID [flags]; quote a name that has spaces"},
		{[]string{"share", "1", "--width", "x"}, `--width needs a number, not "x"`,
			"see `tool share --help`"},
		{[]string{"share", "1", "--width"}, "--width needs a value", "use it as: tool share ID [flags]"},
		{[]string{"share", "1", "--groups", "x"}, "share has no flag --groups", "did you mean --group?"},
		{[]string{"shar"}, `there is no command "shar"`, "did you mean `tool share`?"},
		{[]string{"zzz", "--x"}, `there is no command "zzz"`, "see `tool --help`"},
		{[]string{"--config", "x", "group", "--bogus"}, "group has no flag --bogus", "see `tool group --help`"},
		{[]string{"--config", "x", "group", "lst", "--bogus"}, `there is no command "group lst"`,
			"did you mean `tool group list`?"},
		{[]string{"--bogus", "group"}, "tool has no flag --bogus", "see `tool --help`"},
		{[]string{"key", "flag"}, `key takes no arguments, but there is "flag"`, "use it as: tool key [flags]"},
		{[]string{"key"}, "key needs --kind", "use it as: tool key [flags]"},
		{[]string{"send", "--first", "x"}, `--first needs a number, not "x"`, "see `tool send --help`"},
		{[]string{"send"}, "send needs --message or --since", "see `tool send --help`"},
		{[]string{"role"}, "role needs an e-mail", "use it as: tool role [flags]"},
		{[]string{"role", "a@b"}, "role needs a role", "use it as: tool role [flags]"},
		{[]string{"role", "a", "b", "c"}, `role takes one e-mail and one role, but there is also "c"`,
			"use it as: tool role [flags]; quote a name that has spaces"},
	} {
		err := tool(test.args...).Execute()
		if test.detail == "" {
			if err != nil {
				t.Errorf("%q: %v", test.args, err)
			}
			continue
		}
		var e *snap.Error
		if !errors.As(err, &e) || e.Code != snap.CodeUsage || e.Error() != test.detail || e.Hint != test.hint {
			t.Errorf("%q: %#v, want %s (%s)", test.args, err, test.detail, test.hint)
		}
	}
}

// TestFault: an error's exit code depends on its code and not on its message.
func TestFault(t *testing.T) {
	t.Parallel()
	if e := command.Fault(errors.New("read flag.txt: arg(s)")); e.Code != snap.CodeInternal {
		t.Errorf("an unknown error is %s", e.Code)
	}
	if e := command.Fault(snap.Usage("wrong", "do it")); e.Code != snap.CodeUsage || e.Hint != "do it" {
		t.Errorf("%#v", e)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestResult: a result remembers the error of the first failed write.
func TestResult(t *testing.T) {
	t.Parallel()
	r := command.NewResult(full{})
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	_, _ = r.Write([]byte("x"))
	if r.Err() == nil || r.Err().Error() != "write the result to standard output: no space" {
		t.Errorf("%v", r.Err())
	}
}
