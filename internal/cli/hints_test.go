package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	quoted = regexp.MustCompile("`(snapcli [^`\\\\\n]*)`")
	shown  = regexp.MustCompile(`(?m)^(?:\w+\$ |\$ |    )?(snapcli .*)$`)
	fenced = regexp.MustCompile("(?ms)^```.*?^```")
	flags  = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
)

// TestWhatWeTellPeopleToTypeExists checks every command that a message of the programs or a page of
// the documents suggests: it exists and has the flags.
func TestWhatWeTellPeopleToTypeExists(t *testing.T) {
	t.Parallel()
	root := referenceApp().root()
	count := 0
	check := func(path, line string) {
		count++
		words := strings.Fields(strings.NewReplacer("\"", " ", "'", " ").Replace(line))
		if at := cut(words); at >= 0 {
			words = words[:at]
		}
		if len(words) > 1 && words[1] == "help" {
			return // a page of help
		}
		c, _, err := root.Find(plain(words[1:]))
		if err != nil || !known(root, c, words[1:]) {
			t.Errorf("%s: %q is no command", path, line)
			return
		}
		for _, m := range flags.FindAllStringSubmatch(strings.Join(words, " "), -1) {
			if flagOf(c, m[1]) == nil {
				t.Errorf("%s: %q: %s has no flag --%s", path, line, c.CommandPath(), m[1])
			}
		}
	}
	for path, text := range texts(t, "../..") {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			check(path, m[1])
		}
		if strings.HasSuffix(path, ".md") {
			for _, block := range fenced.FindAllString(text, -1) {
				for _, m := range shown.FindAllStringSubmatch(block, -1) {
					check(path, m[1])
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d commands were found in the texts", count)
	}
}

// cut returns where shell syntax or a comment begins, or -1.
func cut(words []string) int {
	for i, w := range words {
		switch w {
		case "#", "|", "&&", ">", ";", "...", "…", "(", "->", "→":
			return i
		}
	}
	return -1
}

// plain returns the words before the first flag.
func plain(words []string) []string {
	for i, w := range words {
		if strings.HasPrefix(w, "-") {
			return words[:i]
		}
	}
	return words
}

// known reports whether the words name a command, rather than a parent command and a word that is
// none of its subcommands. Words in capitals are placeholders.
func known(root, c *cobra.Command, words []string) bool {
	if c == root {
		return len(plain(words)) == 0 || words[0] == "COMMAND" || words[0] == "X"
	}
	if !c.HasSubCommands() {
		return true
	}
	rest := plain(words)[strings.Count(c.CommandPath(), " "):]
	return len(rest) == 0 || strings.HasPrefix(rest[0], "[") || strings.ToUpper(rest[0]) == rest[0]
}

func flagOf(c *cobra.Command, name string) *pflag.Flag {
	if name == "help" {
		return &pflag.Flag{}
	}
	if f := c.Flags().Lookup(name); f != nil {
		return f
	}
	return c.InheritedFlags().Lookup(name)
}

// texts reads the documents and the sources, without the tests.
func texts(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && path != root ||
			d.Name() == "testdata" ||
			d.Name() == "node_modules"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"), strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"),
			strings.HasSuffix(path, ".html"):
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
