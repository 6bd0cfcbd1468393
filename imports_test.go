package snap_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The halves of the product. Both may use the packages that are in neither.
const (
	client = "client"
	server = "server"
	both   = ""
)

// house is the import table: every package of the module, the half it belongs
// to, and which of our packages it may import. Tests (_test.go) may import
// more. When a package wants to be split or merged, change the code, this
// table and ARCHITECTURE.md together.
var house = map[string]struct {
	half string
	may  []string
}{
	".":   {both, nil},
	"api": {both, []string{".", "internal/auditlog"}},
	// The client makes cards and the service reads them.
	"internal/card": {both, []string{".", "api"}},

	"cmd/snapcli": {client, []string{"internal/cli"}},
	"internal/cli": {client, []string{
		".", "api", "internal/schema", "internal/login", "internal/local", "internal/foreign", "internal/webui",
		"internal/archive", "internal/transfer", "internal/disk", "internal/command", "internal/clone",
		"internal/nightly", "internal/diff", "internal/card", "internal/certificate",
	}},
	"internal/clone":   {client, []string{".", "internal/engine", "internal/disk"}},
	"internal/nightly": {client, []string{".", "internal/disk"}},
	"snaptest":         {client, []string{".", "internal/local"}},
	"internal/login":   {client, []string{".", "api", "internal/disk"}},
	"internal/local": {client, []string{
		".", "api", "internal/schema", "internal/engine", "internal/engine/postgres",
		"internal/engine/mysql", "internal/engine/sqlite", "internal/archive", "internal/sanitize", "internal/reach",
		"internal/foreign", "internal/transfer", "internal/profile", "internal/disk", "internal/clone",
		"internal/nightly", "internal/diff", "internal/card", "internal/certificate", "internal/delta",
	}},
	"internal/diff":           {client, []string{".", "internal/schema", "internal/engine"}},
	"internal/profile":        {client, []string{".", "api", "internal/blob"}},
	"internal/schema":         {both, []string{"."}},
	"internal/engine":         {client, []string{".", "internal/schema"}},
	"internal/engine/charset": {client, nil},
	"internal/reach":          {client, []string{".", "internal/engine"}},
	"internal/engine/postgres": {client, []string{
		".", "internal/schema", "internal/engine", "internal/engine/charset", "internal/disk", "internal/reach",
		"internal/subset",
	}},
	"internal/engine/mysql": {client, []string{
		".", "internal/schema", "internal/engine", "internal/engine/charset", "internal/disk", "internal/reach",
		"internal/subset",
	}},
	"internal/engine/sqlite": {client, []string{
		".", "internal/schema", "internal/engine", "internal/engine/charset", "internal/engine/sqlite/btree",
		"internal/disk", "internal/subset",
	}},
	"internal/engine/sqlite/btree": {client, nil},
	"internal/foreign":             {client, []string{".", "internal/disk"}},
	"internal/subset":              {client, []string{".", "internal/engine"}},
	"internal/sanitize": {client, []string{
		".", "internal/schema", "internal/engine", "internal/personal", "internal/disk",
	}},
	"internal/personal":    {client, nil},
	"internal/certificate": {both, []string{"."}},
	"internal/archive":     {both, []string{".", "internal/schema"}},
	"internal/delta":       {both, []string{".", "internal/archive"}},
	"internal/transfer":    {client, []string{".", "api", "internal/disk"}},
	"internal/webui": {client, []string{
		".", "api", "internal/card", "internal/clone", "internal/disk", "internal/local", "internal/login",
		"internal/look", "internal/nightly",
	}},

	"cmd/snapcloud": {server, []string{".", "internal/operator"}},
	"internal/operator": {server, []string{
		".", "api", "internal/auth", "internal/cloud", "internal/signin", "internal/store",
		"internal/blob", "internal/move", "internal/command",
	}},
	"internal/move": {server, []string{
		".", "internal/auth", "internal/store", "internal/blob", "internal/disk",
	}},
	"internal/cloud": {server, []string{
		".", "api", "internal/auditlog", "internal/auth", "internal/limit", "internal/loadcontrol", "internal/signin",
		"internal/store", "internal/blob", "internal/disk", "internal/look", "internal/scim", "internal/card",
		"internal/console", "internal/archive", "internal/delta", "internal/certificate",
	}},
	// It does not import the store: its pages get all data from the API.
	"internal/console":     {server, []string{".", "api", "internal/auth", "internal/card", "internal/look"}},
	"internal/loadcontrol": {server, []string{".", "internal/limit"}},
	"internal/scim":        {server, []string{".", "internal/store"}},
	"internal/auth":        {server, []string{".", "internal/auditlog", "internal/limit", "internal/store"}},
	"internal/limit":       {server, nil},
	"internal/signin": {server, []string{
		".", "internal/auth", "internal/store", "internal/look",
	}},
	"internal/store": {server, []string{".", "internal/auditlog", "internal/certificate", "internal/disk"}},

	// The service builds the audit log's tree with it, and snapcli verifies it.
	"internal/auditlog": {both, nil},

	"internal/look": {both, []string{".", "api", "internal/card"}},
	"internal/disk": {both, nil},

	"internal/command": {both, []string{"."}},
	// The object stores belong to neither half: the service keeps its snapshots in one, and a
	// storage profile keeps the user's own.
	"internal/blob": {both, []string{".", "internal/disk"}},

	// Only for tests and development; no program of the product imports them.
	"internal/clocktest": {both, nil},
	"internal/cloudtest": {server, []string{
		".", "api", "internal/auth", "internal/blob", "internal/clocktest", "internal/cloud",
		"internal/servertest", "internal/signin", "internal/store",
	}},
	"internal/servertest":        {both, nil},
	"internal/sample":            {both, nil},
	"internal/soak":              {both, nil},
	"internal/subset/subsettest": {both, nil},
	"demo":                       {both, []string{".", "api", "internal/sample"}},
}

// onlyIn maps the beginning of an import path to the only packages that may import it.
var onlyIn = map[string][]string{
	"github.com/pressly/goose":  {"internal/store"},
	"github.com/minio/minio-go": {"internal/blob", "internal/servertest"},
	"database/sql": {
		"internal/store", "internal/engine", "internal/engine/postgres", "internal/engine/mysql",
		"internal/engine/sqlite", "internal/sanitize", "internal/sample", "internal/servertest", "demo",
	},
	"github.com/spf13/cobra":     {"internal/cli", "internal/operator", "internal/command"},
	"github.com/danielgtaylor/":  {"internal/cloud"},
	"github.com/prometheus/":     {"internal/cloud"},
	"go.opentelemetry.io/":       {"internal/cloud"},
	"github.com/wneessen/":       {"internal/cloud"},
	"charm.land/":                {"internal/cli", "demo"},
	"filippo.io/age":             {"internal/archive", "internal/local"},
	"github.com/google/renameio": {"internal/disk"},
	"github.com/go-jose/go-jose": {"internal/auth", "internal/signin", "internal/store"},
}

// TestImportTable compares the packages with the table.
func TestImportTable(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for pkg := range house {
		if _, exists := all[pkg]; !exists {
			t.Errorf("%s has a row in the import table and no code", pkg)
		}
	}
	for pkg, imports := range all {
		row, known := house[pkg]
		if !known {
			t.Errorf("%s is not in the import table", pkg)
			continue
		}
		for _, imported := range imports {
			if ours, is := ours(imported); is && !slices.Contains(row.may, ours) {
				t.Errorf("%s may not import %s", pkg, ours)
			}
			for prefix, places := range onlyIn {
				if strings.HasPrefix(imported, prefix) && !slices.Contains(places, pkg) {
					t.Errorf("%s may not import %s, which belongs in %s", pkg, imported, strings.Join(places, ", "))
				}
			}
		}
	}
}

// TestHalvesMeetInRootAndAPI checks the one law: no package of one half depends, directly or
// indirectly, on a package of the other half.
func TestHalvesMeetInRootAndAPI(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for pkg := range all {
		half := house[pkg].half
		if half == both {
			continue
		}
		for needed := range needs(all, pkg) {
			if other := house[needed].half; other != both && other != half {
				t.Errorf("%s is of the %s half and needs %s of the %s half", pkg, half, needed, other)
			}
		}
	}
	for _, shared := range []string{".", "api"} {
		for needed := range needs(all, shared) {
			if house[needed].half != both {
				t.Errorf("%s needs %s", shared, needed)
			}
		}
	}
}

// needs returns every package of ours that pkg imports, directly or not.
func needs(all map[string][]string, pkg string) map[string]bool {
	seen := map[string]bool{}
	var walk func(string)
	walk = func(p string) {
		for _, imported := range all[p] {
			if q, is := ours(imported); is && !seen[q] {
				seen[q] = true
				walk(q)
			}
		}
	}
	walk(pkg)
	return seen
}

// ours returns the folder of one of the module's packages.
func ours(importPath string) (string, bool) {
	if importPath == "snap" {
		return ".", true
	}
	return strings.CutPrefix(importPath, "snap/")
}

// isModule reports whether a folder is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// sources returns the module's packages, by folder, with the imports of their files except tests.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != "." && !hasOurCode(file) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(file))
		if found[pkg] == nil {
			found[pkg] = map[string]bool{}
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found[pkg][imported] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for pkg, imports := range found {
		all[pkg] = slices.Sorted(maps.Keys(imports))
	}
	return all
}
