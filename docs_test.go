package snap_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"snap/internal/cli"
	"snap/internal/operator"
)

// pages returns the documents for people, by file name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = string(text)
	}
	return all
}

// TestDocumentedCommands checks every command line of the pages with the programs: the command
// exists, and so does each of its flags.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	checked := 0
	for file, text := range pages(t) {
		for _, line := range shellLines(text) {
			words := shellWords(line)
			if len(words) == 0 || words[0] != "snapcli" && words[0] != "snapcloud" {
				continue
			}
			checked++
			if complaint := tryCommand(t, words); complaint != "" {
				t.Errorf("%s: %q: %s", file, line, complaint)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d command lines found; is the test looking in the right place?", checked)
	}
}

// tryCommand asks a program for the help of a command line, which makes it read the flags. It
// returns the mistake, if there is one.
func tryCommand(t *testing.T, words []string) string {
	t.Helper()
	if end := slices.Index(words, "--"); end >= 0 { // the words after it are a command of another program
		words = words[:end]
	}
	var out, said bytes.Buffer
	args := slices.Concat(words[1:], []string{"--help"})
	none := func(string) string { return "" }
	var exit int
	if words[0] == "snapcli" {
		exit = cli.Main(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &said,
			Width: func() int { return 80 }}, none)
	} else {
		exit = operator.Main(t.Context(), args, &out, &said, nil, "test")
	}
	if exit != 0 {
		return said.String()
	}
	// After a group of commands, the next word must be one of its commands.
	for n := len(words); n > 0; n-- {
		path := strings.Join(words[:n], " ")
		if n < len(words) && !strings.HasPrefix(words[n], "-") &&
			(strings.Contains(out.String(), "\n  "+path+" COMMAND\n") ||
				strings.Contains(out.String(), "\n  "+path+" [command]\n")) {
			return path + " has no command " + words[n]
		}
	}
	return ""
}

// shellLines returns the lines of a page's sh blocks, without comments.
func shellLines(text string) []string {
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line+" ", " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

var word = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

var assignment = regexp.MustCompile(`^[A-Z_]+=`)

// shellWords returns the words of the first command of a line. It supports only the shell syntax
// that the pages use: it leaves out assignments in front of the command, and pipes and redirections
// after it.
func shellWords(line string) []string {
	var words []string
	for _, w := range word.FindAllString(line, -1) {
		switch {
		case w == "|" || w == "&&" || w == ">" || w == "||":
			return words
		case len(words) == 0 && assignment.MatchString(w):
		default:
			words = append(words, strings.Trim(w, `'"`))
		}
	}
	return words
}

// TestPageLinks checks the links between the pages.
func TestPageLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for file, text := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), found[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", file, found[1])
			}
		}
	}
}

// TestPagesNameWhatExists checks that the paths in ARCHITECTURE.md, CONTRIBUTING.md and SECURITY.md
// exist.
func TestPagesNameWhatExists(t *testing.T) {
	t.Parallel()
	path := regexp.MustCompile("`((?:internal|cmd|demo|docs|api)/[a-z_/.0-9-]+)`")
	for _, file := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"} {
		for _, found := range path.FindAllStringSubmatch(pages(t)[file], -1) {
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s names %s, which is not there", file, found[1])
			}
		}
	}
}

// TestArchitectureNamesEveryPackage compares ARCHITECTURE.md with the import table.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	t.Parallel()
	page := read(t, "ARCHITECTURE.md")
	for pkg := range house {
		top := strings.Join(strings.SplitN(pkg, "/", 3)[:min(2, strings.Count(pkg, "/")+1)], "/")
		if strings.HasPrefix(pkg, "internal/") && !strings.Contains(page, top) {
			t.Errorf("ARCHITECTURE.md does not tell what %s is", top)
		}
	}
}

// TestDecisionsAreNumbered: each record has its own number, in its name and its heading. A
// withdrawn record leaves a gap.
func TestDecisionsAreNumbered(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("docs/decisions/*.md")
	if err != nil || len(files) < 27 {
		t.Fatalf("%d records, %v", len(files), err)
	}
	seen := map[int]string{}
	for _, file := range files {
		n, err := strconv.Atoi(filepath.Base(file)[:4])
		if err != nil || !strings.HasPrefix(read(t, file), fmt.Sprintf("# %d. ", n)) {
			t.Errorf("%s should have its number in its heading", file)
		}
		if other := seen[n]; other != "" {
			t.Errorf("%s and %s have the same number", file, other)
		}
		seen[n] = file
	}
}

// TestMigrationsAreNumbered checks that each database's migrations have the numbers 1, 2, 3 and so
// on, and that both databases have the same ones. Two branches can take the same number.
func TestMigrationsAreNumbered(t *testing.T) {
	t.Parallel()
	names := map[string][]string{}
	for _, database := range []string{"postgres", "sqlite"} {
		entries, err := os.ReadDir(filepath.Join("internal/store/migrations", database))
		if err != nil {
			t.Fatal(err)
		}
		for i, entry := range entries {
			if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(entry.Name(), want) {
				t.Errorf("%s of %s should begin with %s", entry.Name(), database, want)
			}
			names[database] = append(names[database], entry.Name())
		}
	}
	if !slices.Equal(names["postgres"], names["sqlite"]) {
		t.Errorf("PostgreSQL and SQLite have different migrations: %v", names)
	}
}
