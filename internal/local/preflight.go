package local

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"snap"
	"snap/internal/archive"
	"snap/internal/disk"
	"snap/internal/engine"
	"snap/internal/engine/sqlite"
	"snap/internal/schema"
)

// Preflight describes a load before it changes anything.
type Preflight struct {
	Snapshot      Snapshot
	Destination   string   // URL without its password
	Exists        bool     // the destination exists and would be replaced
	Empty         bool     // it exists, but has nothing that would be lost
	Only          []string // patterns of the tables whose rows would be replaced, instead of the whole destination
	Into          Into
	Tables        int   // number of tables in the destination
	Size          int64 // of the destination in bytes
	Connections   []string
	ServerVersion string
	Warnings      []string
	LeftOut       []schema.Program // programs left out, if the snapshot is loaded as data
	Programs      []schema.Program // programs that are loaded, if the snapshot is not the user's own
}

// Loses reports whether the load would remove content.
func (p Preflight) Loses() bool { return p.Exists && !p.Empty }

// destination returns the database that a load would replace. It returns an error if its engine is
// not that of the snapshot, or if the destination is production and force is not set.
func (a *Agent) destination(t Target, s Snapshot, force bool) (database, error) {
	if t.Destination == "" {
		return database{}, snap.Usage(fmt.Sprintf("the target %q has no destination to load into", t.Name),
			fmt.Sprintf("give it one with `snapcli targets add %s --destination URL`", snap.ShellWord(t.Name)))
	}
	to, err := a.databaseAt(t.destination())
	if err != nil {
		return database{}, err
	}
	if to.kind != s.Engine {
		return database{}, snap.Usage(fmt.Sprintf("the snapshot %s is of a %s database, but the destination of %q is "+
			"a %s database", s.Name, s.Engine, t.Name, to.kind), "give the target a destination of the same kind")
	}
	if why := a.production(t, to); why != "" && !force {
		return database{}, snap.Forbidden(fmt.Sprintf("the destination %s %s; loading would replace it", to.shown, why),
			"check the target's destination; if you want to replace it, use --force-production")
	}
	return to, nil
}

var productionWord = regexp.MustCompile(`(?i)(^|[^a-z])(prod|production|live)([^a-z]|$)`)

// production returns the reason why a destination must not be replaced without force: it is marked
// as production, it is the source itself, or its name suggests production. It returns "" if there
// is none.
func (a *Agent) production(t Target, to database) string {
	if t.Production {
		return "is marked as production"
	}
	if t.Source != "" {
		if from, err := a.databaseAt(t.source()); err == nil && samePlace(from, to) {
			return "is the target's own source"
		}
	}
	if to.kind != snap.SQLite && slices.ContainsFunc(placesOf(to), productionWord.MatchString) {
		return "looks like production by its name"
	}
	return ""
}

// samePlace reports whether two URLs can name the same database, regardless of the users in them.
func samePlace(x, y database) bool {
	if x.kind != y.kind {
		return false
	}
	others := placesOf(y)
	return slices.ContainsFunc(placesOf(x), func(place string) bool { return slices.Contains(others, place) })
}

// placesOf returns strings that identify a database. There can be several, because a URL can name
// several hosts or a PostgreSQL service.
func placesOf(d database) []string {
	locator, ok := d.engine.(engine.Locator)
	if !ok {
		path, _ := sqlite.Path(d.url)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		return []string{path}
	}
	located, err := locator.Located(d.url)
	if err != nil {
		return []string{d.url}
	}
	var all []string
	for _, l := range located {
		host, port, err := net.SplitHostPort(strings.ToLower(l.Host))
		switch {
		case err != nil:
			host = l.Host
		case snap.IsLoopback(host), strings.HasPrefix(host, "/"): // a socket
			host = cmp.Or(strings.ToLower(l.From), "127.0.0.1")
		}
		all = append(all, host+" "+port+" /"+l.Database)
	}
	return all
}

// Preflight describes what a load would do and changes nothing. It reads only the snapshot's
// manifest; [Agent.Load] checks every byte before it begins.
func (a *Agent) Preflight(ctx context.Context, target string, o LoadOptions) (Preflight, error) {
	t, err := a.Target(target)
	if err != nil {
		return Preflight{}, err
	}
	s, err := a.toLoad(t.Name, o)
	if err != nil {
		return Preflight{}, err
	}
	to, err := a.destination(t, s, o.Force)
	if err != nil {
		return Preflight{}, err
	}
	r, err := openSnapshot(s)
	if err != nil {
		return Preflight{}, err
	}
	defer r.Close()
	if err := a.unlock(r, o.Identity); err != nil {
		return Preflight{}, err
	}
	if err := checkRecord(s, r.Manifest()); err != nil {
		return Preflight{}, err
	}
	d, err := a.dumpOf(s, r)
	if err != nil {
		return Preflight{}, err
	}
	d.WithPrograms = o.WithPrograms
	return a.preflight(ctx, s, r, d, to, nil)
}

// preflight examines the destination and the free disk space.
func (a *Agent) preflight(ctx context.Context, s Snapshot, r *archive.Reader, d engine.Dump, to database,
	p Progress) (Preflight, error) {
	p.phase("preflight")
	info, err := to.engine.Check(ctx, to.url)
	if err != nil {
		return Preflight{}, err
	}
	if err := a.requireRoom(r, to); err != nil {
		return Preflight{}, err
	}
	f := Preflight{
		Snapshot: s, Destination: to.shown, Exists: info.Exists, Empty: info.Empty, Tables: len(info.Tables),
		Size: info.Size, Connections: info.Connections, ServerVersion: info.ServerVersion, Warnings: info.Warnings,
	}
	if m := r.Manifest(); to.kind != snap.SQLite && majorOf(m.ServerVersion) > majorOf(info.ServerVersion) {
		f.Warnings = append(f.Warnings,
			fmt.Sprintf("the snapshot is from version %s and the destination's server is %s: the server may not "+
				"support everything in the snapshot", m.ServerVersion, info.ServerVersion))
	}
	if d.Trust != engine.Mine && d.Info.Schema != nil {
		f.Programs = d.Info.Schema.Programs
	}
	if d.Trust == engine.Foreign && !d.WithPrograms {
		f.LeftOut, f.Programs = f.Programs, nil
	}
	return f, nil
}

// requireRoom returns an error if the disk has no space for the dump in the folder where it is
// unpacked.
func (a *Agent) requireRoom(r *archive.Reader, to database) error {
	dir := a.data
	if to.kind == snap.SQLite {
		path, err := sqlite.Path(to.url)
		if err != nil {
			return err
		}
		dir = filepath.Dir(path)
	}
	need, _ := r.Has(dumpSection)
	free, known := disk.Free(dir)
	if !known || need < free {
		return nil
	}
	return &snap.Error{
		Code: snap.CodeStorageFull,
		Detail: fmt.Sprintf("loading needs %s in %s, but only %s are free", humanize.Bytes(uint64(need)), dir,
			humanize.Bytes(uint64(free))),
		Hint: "free some space there and try again; nothing was changed",
	}
}

// majorOf returns the number at the start of a version.
func majorOf(version string) int {
	number, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(number)
	return n
}
