package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/cloudtest"
	"snap/internal/engine"
	"snap/internal/schema"
)

// The provenance of a snapshot depends on where this machine got it, and on nothing in the file.
func TestProvenance(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	gail := c.As("gail@globex.test")
	there := machine(t)
	built := there.made(t, "shop", snap.TypeSnapshot, noon, 1000)
	pushed, err := there.Push(t.Context(), gail, "shop", PushOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gail.ShareOrg(t.Context(), pushed.ID, "acme", nil); err != nil {
		t.Fatal(err)
	}
	for email, want := range map[string]Provenance{
		"alice@acme.test":  {Origin: Theirs, Organization: "globex", Service: c.URL},
		"gail@globex.test": {Origin: Ours, Organization: "globex", Person: "gail@globex.test", Service: c.URL},
	} {
		here := machine(t)
		pulled, err := here.Pull(t.Context(), c.As(email), "shop", PullOptions{SnapshotID: pushed.ID}, nil)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := here.Snapshot(pulled.Snapshot.Name)
		if err != nil || kept.From != want || pulled.Snapshot.From != want {
			t.Errorf("%s has %+v, want %+v: %v", email, kept.From, want, err)
		}
	}
	again, err := there.Pull(t.Context(), gail, "shop", PullOptions{}, nil)
	if err != nil || !again.Here || again.Snapshot.From.Origin != Mine || again.Snapshot.Name != built.Name {
		t.Errorf("what was built here and pulled again is %+v, %v", again.Snapshot.From, err)
	}
}

// A snapshot whose record an older version wrote counts as the user's own only if it was not pulled
// and its time is more precise than the times of the service.
func TestProvenanceOfOlderRecords(t *testing.T) {
	t.Parallel()
	a := machine(t)
	for name, c := range map[string]struct {
		at     time.Time
		pulled bool
		from   string
		want   Origin
	}{
		"built":            {noon.Add(123456), false, "", Mine},
		"pulled":           {noon.Add(123 * time.Millisecond), false, "", Unknown},
		"marked as pulled": {noon.Add(123456), true, "", Unknown},
		"a strange origin": {noon.Add(123456), true, "admin", Unknown},
	} {
		s := a.made(t, name, snap.TypeSnapshot, c.at, 100)
		s.From, s.Pulled = Provenance{Origin: Origin(c.from)}, c.pulled
		if err := a.writeRecord(s); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Snapshot(s.Name); err != nil || got.From.Origin != c.want {
			t.Errorf("%s: %q, want %q: %v", name, got.From.Origin, c.want, err)
		}
	}
}

func TestTrustFollowsProvenance(t *testing.T) {
	t.Parallel()
	strict := machine(t)
	configured(t, strict, "trust: {own_organization: false}\n")
	for _, c := range []struct {
		agent *Agent
		from  Origin
		want  engine.Trust
	}{
		{machine(t), Mine, engine.Mine}, {machine(t), Ours, engine.Ours}, {machine(t), Theirs, engine.Foreign},
		{machine(t), Unknown, engine.Foreign}, {machine(t), "", engine.Foreign},
		{strict, Mine, engine.Mine}, {strict, Ours, engine.Foreign}, {strict, Theirs, engine.Foreign},
	} {
		if got := c.agent.trust(Snapshot{From: Provenance{Origin: c.from}}); got != c.want {
			t.Errorf("%q is read with trust %d, want %d", c.from, got, c.want)
		}
	}
}

// For a foreign snapshot, every command requires a checked description.
func TestForeignSnapshotsNeedADescription(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		described *schema.Schema
		code      snap.Code
	}{
		"none":  {nil, snap.CodePolicy},
		"wrong": {&schema.Schema{Tables: []schema.Table{{Name: schema.Name{Name: "a\x00b"}}}}, snap.CodeCorrupt},
	} {
		foreign := s.redescribed(t, built, c.described)
		options := LoadOptions{Snapshot: foreign.Name, WithPrograms: true, Trust: func(Preflight) error { return nil }}
		_, load := s.Load(t.Context(), shopTarget, options, nil)
		_, preflight := s.Preflight(t.Context(), shopTarget, options)
		_, rules := s.Sanitize(t.Context(), shopTarget,
			SanitizeOptions{Snapshot: foreign.Name, Rules: s.rulesFile(t, "keep: ['*']\n")}, nil)
		_, bySQL := s.Sanitize(t.Context(), shopTarget,
			SanitizeOptions{Snapshot: foreign.Name, SQL: s.sqlFile(t, "SELECT 1")}, nil)
		suggest := s.SuggestRules(t.Context(), shopTarget, foreign.Name, filepath.Join(t.TempDir(), "new.yaml"), nil)
		for what, err := range map[string]error{"load": load, "preflight": preflight, "rules": rules, "sql": bySQL,
			"init": suggest} {
			if snap.CodeOf(err) != c.code {
				t.Errorf("description %s, %s: %v", name, what, err)
			}
		}
	}
}

// redescribed turns the user's own snapshot into one of another organization: the
// same dump with another description.
func (s shop) redescribed(t *testing.T, built Snapshot, described *schema.Schema) Snapshot {
	t.Helper()
	r, err := archive.OpenOwn(built.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dump := dumpIn(r)
	in, err := dump.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	d := draft{Manifest: archive.Manifest{Target: built.Target, Type: built.Type, Engine: built.Engine},
		from: Provenance{Origin: Theirs, Organization: "globex"}}
	foreign, err := s.writeSnapshot(t.Context(), d, copied(in, dump.Info, described))
	if err != nil {
		t.Fatal(err)
	}
	return foreign
}

func copied(in io.Reader, info engine.Info, described *schema.Schema) func(io.Writer) (engine.Info, error) {
	return func(w io.Writer) (engine.Info, error) {
		_, err := io.Copy(w, in)
		info.Schema = described
		return info, err
	}
}

// configured writes the configuration and reads it again.
func configured(t *testing.T, a *Agent, text string) {
	t.Helper()
	if err := os.WriteFile(a.ConfigPath(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.file.read(); err != nil {
		t.Fatal(err)
	}
}

// Trust applies to one organization or person of one service. The name must match completely.
func TestTrusts(t *testing.T) {
	t.Parallel()
	a := machine(t)
	if _, _, err := a.Trust("org:globex"); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("without a service: %v", err)
	}
	configured(t, a, "cloud: {url: https://cloud.example/}\n")
	for _, name := range []string{"org:globex", "Gail@Globex.test", "org:globex"} {
		if _, _, err := a.Trust(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "globex", "org:", "org:Glob ex", "org:globex@x"} {
		if _, _, err := a.Trust(bad); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for p, want := range map[Provenance]bool{
		{Origin: Theirs, Organization: "globex", Service: "https://cloud.example"}:                          true,
		{Origin: Theirs, Organization: "globex", Service: "https://other.example"}:                          false,
		{Origin: Theirs, Organization: "globex-2", Service: "https://cloud.example"}:                        false,
		{Origin: Theirs, Organization: "globex"}:                                                            false,
		{Origin: Ours, Organization: "acme", Person: "gail@globex.test", Service: "https://cloud.example"}:  true,
		{Origin: Ours, Organization: "acme", Person: "gail2@globex.test", Service: "https://cloud.example"}: false,
		{Origin: Unknown}: false,
	} {
		if got, err := a.trusted(p); got != want || err != nil {
			t.Errorf("%+v: %t, %v", p, got, err)
		}
	}
	if _, err := a.Distrust("org:globex"); err != nil {
		t.Fatal(err)
	}
	all, err := a.Trusts()
	if err != nil || len(all) != 1 || all[0].Name() != "gail@globex.test" {
		t.Errorf("left: %+v, %v", all, err)
	}
	if _, err := a.Distrust("org:globex"); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("removed twice: %v", err)
	}
}

func hintOf(err error) string {
	var e *snap.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// Somebody else's programs are loaded only if the user trusted the author earlier,
// or agrees when asked.
func TestProgramsNeedTrust(t *testing.T) {
	t.Parallel()
	a := machine(t)
	configured(t, a, "cloud: {url: https://cloud.example}\n")
	p := Preflight{Snapshot: Snapshot{Name: "s",
		From: Provenance{Origin: Theirs, Organization: "globex", Service: "https://cloud.example"}}}
	err := a.allowPrograms(p, nil)
	if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(hintOf(err), "snapcli trust add org:globex") {
		t.Errorf("without trust: %v", err)
	}
	asked := 0
	yes := func(Preflight) error { asked++; return nil }
	if err := a.allowPrograms(p, yes); err != nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if _, _, err := a.Trust("org:globex"); err != nil {
		t.Fatal(err)
	}
	if err := a.allowPrograms(p, nil); err != nil {
		t.Errorf("with trust: %v", err)
	}
}

// SQL for masking never runs on a source or in production.
func TestScratchIsNeverASource(t *testing.T) {
	t.Parallel()
	a := machine(t)
	const db = "postgres://me@db.example/shop"
	for name, c := range map[string]struct {
		t    Target
		code snap.Code
	}{
		"only a source":             {Target{Source: db}, snap.CodeUsage},
		"the source as destination": {Target{Source: db, Destination: db}, snap.CodeForbidden},
		"the source as scratch":     {Target{Source: db, Scratch: db}, snap.CodeForbidden},
		"production": {Target{Destination: "postgres://me@localhost/dev", Production: true},
			snap.CodeForbidden},
		"named production": {Target{Destination: "postgres://me@prod.example/shop"}, snap.CodeForbidden},
		"another kind":     {Target{Scratch: "mysql://me@localhost/dev"}, snap.CodeUsage},
		"a destination":    {Target{Source: db, Destination: "postgres://me@localhost/dev"}, ""},
		"a scratch server": {Target{Source: db, Destination: db, Production: true,
			Scratch: "postgres://me@localhost/x"}, ""},
	} {
		c.t.Name = "shop"
		_, err := a.scratchServer(c.t, snap.Postgres, t.TempDir())
		if err == nil && c.code == "" {
			continue
		}
		if err == nil || snap.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
	if _, err := a.scratchServer(Target{Name: "notes", Source: "sqlite:///tmp/notes.db"}, snap.SQLite,
		t.TempDir()); err != nil {
		t.Errorf("SQLite has its scratch file in the data folder: %v", err)
	}
}

// A masked copy is as foreign as its original.
func TestMaskedCopiesKeepTheirProvenance(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	from := Provenance{Origin: Ours, Organization: "acme", Service: "https://cloud.example"}
	if built.From != (Provenance{Origin: Mine}) {
		t.Errorf("built here is %+v", built.From)
	}
	built.From = from
	if err := s.writeRecord(built); err != nil {
		t.Fatal(err)
	}
	masked, err := s.Sanitize(t.Context(), shopTarget, SanitizeOptions{Rules: s.rulesFile(t, "keep: ['*']\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Snapshots(shopTarget)
	if err != nil ||
		!slices.ContainsFunc(all, func(o Snapshot) bool { return o.Name == masked.Name && o.From == from }) {
		t.Errorf("the masked copy is %+v: %v", masked.From, err)
	}
}
