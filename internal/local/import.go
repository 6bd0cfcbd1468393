package local

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"snap"
	"snap/internal/disk"
	"snap/internal/foreign"
	"snap/internal/sanitize"
)

// Import is the result of converting another tool's configuration.
type Import struct {
	Targets  []Target          // added or to be added
	Profiles map[string]string // URLs by name
	Files    []string          // rules and SQL files, written or to be written
	Left     []foreign.Left    // settings without an equivalent, or with a different meaning here

	texts map[string]string // the files' content, by path
}

// maxForeign limits the size of another tool's configuration.
const maxForeign = 16 << 20

// ReadForeign reads the configuration of another tool, "dbsnapper" or "greenmask", and converts it.
// It writes nothing. target is the name for a target that has none.
func (a *Agent) ReadForeign(tool, path, target string) (Import, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Import{}, &snap.Error{Code: snap.CodeNotFound, Detail: "there is no file " + path,
			Hint: "give the path of the other tool's configuration"}
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxForeign) {
		return Import{}, snap.Usage(path+" is not a configuration file", "")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Import{}, snap.Usage(fmt.Sprintf("the file %s cannot be read: %s", path, reason(err)),
			"check its path and permissions")
	}
	var found foreign.Found
	switch tool {
	case "dbsnapper":
		home, _ := os.UserHomeDir()
		found, err = foreign.DBSnapper(path, text, home)
	case "greenmask":
		found, err = foreign.Greenmask(path, text, target)
	default:
		err = snap.Usage(fmt.Sprintf("configurations of %q are not supported", tool),
			"use one of dbsnapper or greenmask")
	}
	if err != nil {
		return Import{}, err
	}
	return a.importOf(found, filepath.Dir(path))
}

// importOf converts the settings found in a file of the folder dir.
func (a *Agent) importOf(found foreign.Found, dir string) (Import, error) {
	i := Import{Profiles: map[string]string{}, Left: found.Left, texts: map[string]string{}}
	for _, p := range found.Profiles {
		i.Profiles[p.Name] = p.URL
	}
	folder := filepath.Dir(a.ConfigPath())
	for _, f := range found.Targets {
		t := Target{Name: f.Name, Source: f.Source, Destination: f.Destination, Jobs: max(f.Jobs, 0)}
		for _, raw := range []string{t.Source, t.Destination} {
			if raw == "" {
				continue
			}
			if err := CheckURL(raw); err != nil {
				return i, fmt.Errorf("the target %s: %w", t.Name, err)
			}
		}
		if f.SQLFile != "" {
			t.Sanitize.SQL = f.SQLFile
			if !filepath.IsAbs(f.SQLFile) {
				absolute, err := filepath.Abs(filepath.Join(dir, f.SQLFile))
				if err != nil {
					return i, fmt.Errorf("find %s: %w", f.SQLFile, err)
				}
				t.Sanitize.SQL = absolute
			}
		}
		if f.SQL != "" {
			t.Sanitize.SQL = i.addFile(filepath.Join(folder, f.Name+".sql"), f.SQL)
		}
		if f.Rules != "" {
			t.Sanitize.Rules = i.addFile(filepath.Join(folder, f.Name+".rules.yaml"), f.Rules)
		}
		i.Targets = append(i.Targets, t)
	}
	return i, i.check()
}

// addFile adds a file to write and returns its path.
func (i *Import) addFile(path, text string) string {
	i.Files, i.texts[path] = append(i.Files, path), text
	return path
}

// check validates the rules that will be written, with the parser that will read them.
func (i *Import) check() error {
	for _, t := range i.Targets {
		if text, ok := i.texts[t.Sanitize.Rules]; ok {
			if err := sanitize.CheckRules(t.Sanitize.Rules, []byte(text)); err != nil {
				return fmt.Errorf("the rules of %s: %w", t.Name, err)
			}
		}
	}
	return nil
}

// Import writes the converted settings to the configuration, and writes the files next to it. If a
// target, a storage profile or a file already exists, it returns a conflict and writes nothing.
func (a *Agent) Import(i Import) error {
	config := a.Config()
	var existing []string
	for _, t := range i.Targets {
		if _, ok := config.Targets[t.Name]; ok {
			existing = append(existing, "the target "+t.Name)
		}
	}
	for name := range i.Profiles {
		if _, ok := config.StorageProfiles[name]; ok {
			existing = append(existing, "the storage profile "+name)
		}
	}
	for path := range i.texts {
		if _, err := os.Lstat(path); err == nil {
			existing = append(existing, "the file "+path)
		}
	}
	if len(existing) > 0 {
		slices.Sort(existing)
		return &snap.Error{Code: snap.CodeConflict, Detail: existing[0] + " already exists",
			Hint: "remove it first, or import into another configuration: --config FILE"}
	}
	return a.writeImport(i)
}

func (a *Agent) writeImport(i Import) error {
	for path, text := range i.texts {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return diskError(err, "create the configuration folder")
		}
		if err := disk.Replace(path, []byte(text), 0o600); err != nil {
			return diskError(err, "write "+path)
		}
	}
	for _, t := range i.Targets {
		if err := a.AddTarget(t); err != nil {
			return err
		}
	}
	for name, url := range i.Profiles {
		if err := a.file.addProfile(name, StorageProfile{URL: url}); err != nil {
			return err
		}
	}
	return nil
}

// Variable is an environment variable that an imported URL uses.
type Variable struct {
	Name string
	Host string // the host that would receive its value
}

// Variables returns every ${NAME} in the imported URLs, with the host that its value is sent to.
// Each pair appears once, in the order of the targets and profiles.
func (i Import) Variables() []Variable {
	var urls []string
	for _, t := range i.Targets {
		urls = append(urls, t.Source, t.Destination)
	}
	for _, name := range slices.Sorted(maps.Keys(i.Profiles)) {
		urls = append(urls, i.Profiles[name])
	}
	var found []Variable
	for _, raw := range urls {
		for _, m := range reference.FindAllStringSubmatch(raw, -1) {
			v := Variable{Name: m[1], Host: hostOf(raw)}
			if !slices.Contains(found, v) {
				found = append(found, v)
			}
		}
	}
	return found
}

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// hostOf returns, for display, the endpoint parameter of a URL or else its host. The URL may
// contain ${NAME} anywhere.
func hostOf(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	authority, query, _ := strings.Cut(rest, "/")
	if values, err := url.ParseQuery(query[strings.Index(query, "?")+1:]); err == nil && values.Get("endpoint") != "" {
		return values.Get("endpoint")
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		authority = authority[at+1:]
	}
	if authority == "" {
		return "an unknown host"
	}
	return authority
}
