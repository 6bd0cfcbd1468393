package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the generated pages instead of comparing them")

// referenceApp returns an app whose commands are described but never run.
func referenceApp() *app {
	return &app{
		io:  IO{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard},
		env: func(string) string { return "" }, now: time.Now, log: slog.New(slog.DiscardHandler),
	}
}

// TestReferencePage: docs/cli.md has the help text of every command. Update it
// with: go test ./internal/cli -run TestReferencePage -update
func TestReferencePage(t *testing.T) {
	t.Parallel()
	root := referenceApp().root()
	var page bytes.Buffer
	page.WriteString("# The commands of snapcli\n\nThis page is generated from the commands; `snapcli COMMAND " +
		"--help` prints the same text.\n\n")
	fmt.Fprintf(&page, "Every command takes these flags. In `snapcli cloud snapshots share` and `unshare`, --org\n"+
		"names the organization on the other side of the share instead.\n\n```\n%s```\n",
		root.PersistentFlags().FlagUsages())
	for _, c := range commands(root) {
		describe(&page, c)
	}
	for _, c := range topics() {
		fmt.Fprintf(&page, "\n## snapcli help %s\n\n%s\n", c.Name(), markdown(c.Long))
	}
	compare(t, "../../docs/cli.md", page.Bytes())
}

// commands lists the tree, parents first.
func commands(root *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			all = append(append(all, c), commands(c)...)
		}
	}
	return all
}

func describe(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "\n## %s\n\n%s.\n\n```\n%s\n```\n", c.CommandPath(), c.Short, c.UseLine())
	if long := strings.TrimSpace(c.Long); long != "" && long != c.Short {
		fmt.Fprintf(w, "\n%s\n", markdown(long))
	}
	if flags := own(c); flags.HasAvailableFlags() {
		fmt.Fprintf(w, "\n```\n%s```\n", flags.FlagUsages())
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
}

// own returns the command's own flags, without --help.
func own(c *cobra.Command) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			set.AddFlag(f)
		}
	})
	return set
}

// markdown puts the indented blocks of a help text into fences.
func markdown(text string) string {
	var b strings.Builder
	fenced := false
	for _, line := range strings.Split(text, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != fenced && line != "" {
			fenced = indented
			b.WriteString("```\n")
		}
		b.WriteString(line + "\n")
	}
	if fenced {
		b.WriteString("```\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// TestManPages checks that docs/man has the commands' own help.
func TestManPages(t *testing.T) {
	t.Parallel()
	root := referenceApp().root()
	root.DisableAutoGenTag = true
	for _, c := range append(commands(root), root) {
		c.Long = indented.ReplaceAllString(c.Long, "  $0")
		c.Flags().VisitAll(inMarkdown)
		c.PersistentFlags().VisitAll(inMarkdown)
	}
	dir := t.TempDir()
	never := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &never, Source: "snapcli", Manual: "snapcli"},
		dir); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(made) < 30 {
		t.Fatalf("%d pages, %v", len(made), err)
	}
	for _, file := range made {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Join("../../docs/man", filepath.Base(file)), text)
	}
	kept, err := filepath.Glob("../../docs/man/*.1")
	if err != nil || len(kept) != len(made) {
		t.Errorf("docs/man has %d pages, there are %d commands (%v)", len(kept), len(made), err)
	}
}

// indented matches the beginning of the indented lines of a help text: its commands. The generator
// of man pages reads Markdown, in which code is indented by at least four spaces.
var indented = regexp.MustCompile(`(?m)^  `)

// inMarkdown escapes what would be read as an HTML tag in a flag's description.
func inMarkdown(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "<", `\<`) }

// compare compares a generated file with the stored one.
func compare(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not match the commands (%v); update it with: go test ./internal/cli -run "+
			"'TestReferencePage|TestManPages|TestJSONPage' -update", path, err)
	}
}

// TestEveryCommandTeaches: every command has a purpose, a paragraph and an example.
func TestEveryCommandTeaches(t *testing.T) {
	t.Parallel()
	for _, c := range commands(referenceApp().root()) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || c.Long == "" {
			t.Errorf("%s: purpose %q, paragraph %q", c.CommandPath(), c.Short, c.Long)
		}
		if c.Example == "" && !c.HasSubCommands() {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			if len(line) > 140 {
				t.Errorf("%s: a line of its help is %d wide: %s", c.CommandPath(), len(line), line)
			}
		}
	}
}

// TestHelpWraps: a line of a command's help ends where the next word does not fit, or before a
// command in backquotes, and no line ends within one.
func TestHelpWraps(t *testing.T) {
	t.Parallel()
	for _, c := range commands(referenceApp().root()) {
		before := ""
		for line := range strings.SplitSeq(c.Long, "\n") {
			word, _, _ := strings.Cut(line, " ")
			early := before != "" && word != "" && word[0] != '`' && len(before)+1+len(word) <= 80
			if early || strings.Count(line, "`")%2 != 0 {
				t.Errorf("%s: rewrap its help at: %s", c.CommandPath(), line)
			}
			before = line
		}
	}
}

// TestHelpFits: no line of a command's help is wider than a terminal of 80 columns, except a
// command that cannot be written shorter.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	for _, args := range helpPages() {
		root := referenceApp().root()
		var page bytes.Buffer
		root.SetOut(&page)
		root.SetArgs(args)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(page.String(), "\n") {
			if fits := len(line) <= 80; !fits && !strings.Contains(line, " snapcli completion ") &&
				!strings.Contains(line, "  snapcli config schema ") {
				t.Errorf("%s: %d wide: %s", strings.Join(args, " "), len(line), line)
			}
			if strings.Contains(line, `\n`) {
				t.Errorf("%s: a text has an escape: %s", strings.Join(args, " "), line)
			}
		}
	}
}

// helpPages are the arguments that print the help of every command.
func helpPages() (pages [][]string) {
	for _, c := range commands(referenceApp().root()) {
		pages = append(pages, append(strings.Fields(c.CommandPath())[1:], "--help"))
	}
	return append(pages, []string{"--help"})
}
