package local

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/cloudtest"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// A hostile snapshot goes through every step: push, share, pull, and then show,
// load, mask by rules and by SQL, and subset. Afterwards the machine's files, every
// other database, every account and every setting of the server are unchanged.
func TestHostileSnapshots(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	for name, a := range attacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testHostile(t, a)
		})
	}
}

func testHostile(t *testing.T, a attack) {
	v := a.victim(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	there, here := machine(t), map[string]*Agent{} // by target: listing few snapshots is fast
	built(t, there, "shop", a.from(t, a.hostile(v)))
	altered := a.altered(t, there, built(t, there, "calm", a.from(t, a.calm)))
	gail, alice := c.As("gail@globex.test"), c.As("alice@acme.test")
	for _, target := range append(slices.Collect(maps.Keys(altered)), "shop") {
		pushed, err := there.Push(t.Context(), gail, target, PushOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		shareWith(t, gail, pushed.ID)
		here[target] = machine(t)
		if _, err := here[target].Pull(t.Context(), alice, target, PullOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		configured(t, here[target], "cloud: {url: "+c.URL+"}\n")
	}
	before := v.state(t)
	destination := used(t, here["shop"], v)
	v.exec(t, destination, change)
	v.same(t, before, "the database")
	if n := v.value(t, destination, a.programs); n != "0" {
		t.Errorf("%s programs are in the database", n)
	}
	if n := v.value(t, destination, "SELECT count(*) FROM customer WHERE email LIKE '%@real.example'"); n != "2" {
		t.Errorf("%s rows are in the database, want 2", n)
	}
	for target, what := range altered {
		if err := tried(t, here[target], v, target); err == nil && !slices.Contains(a.sound, what) {
			t.Errorf("%q is loaded with programs", what)
		}
		v.same(t, before, what)
	}
	ours(t, here["shop"])
	v.same(t, before, "the snapshot as one of the user's own organization")
	a.mine(t, here, v, altered, destination)
}

// from creates one of the author's databases.
func (a attack) from(t *testing.T, text string) (url string) {
	t.Helper()
	url = a.source(t)
	a.exec(t, url, text)
	return url
}

// built makes a user of another organization build a snapshot of a database.
func built(t *testing.T, there *Agent, target, from string) Snapshot {
	t.Helper()
	if err := there.AddTarget(Target{Name: target, Source: from}); err != nil {
		t.Fatal(err)
	}
	s, err := there.Build(t.Context(), target, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// altered derives more snapshots from one. Each has a different part changed in a way that no
// database would write. It returns the changes by target.
func (a attack) altered(t *testing.T, there *Agent, built Snapshot) map[string]string {
	t.Helper()
	r, err := archive.OpenOwn(built.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dump, all := dumpIn(r), map[string]string{}
	write := func(name string, change func(text []byte, info *engine.Info) []byte) {
		in, err := dump.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		info := dump.Info
		described := *info.Schema
		described.Tables = slices.Clone(described.Tables)
		info.Schema = &described
		text = change(text, &info)
		target := fmt.Sprintf("altered-%d", len(all)+1)
		d := draft{Manifest: archive.Manifest{Target: target, Type: built.Type, Engine: built.Engine},
			from: Provenance{Origin: Mine}}
		if _, err := there.writeSnapshot(t.Context(), d, func(w io.Writer) (engine.Info, error) {
			_, err := w.Write(text)
			return info, err
		}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[target] = name
	}
	for old, others := range a.texts {
		for _, other := range others {
			write(other, func(text []byte, _ *engine.Info) []byte {
				if !bytes.Contains(text, []byte(old)) {
					t.Fatalf("the dump does not have %q", old)
				}
				return bytes.Replace(text, []byte(old), a.fit(other, len(old)), 1)
			})
		}
	}
	for name, change := range hostileDescriptions {
		write(name, func(text []byte, info *engine.Info) []byte {
			change(info.Schema)
			return text
		})
	}
	return all
}

// hostileDescriptions are changes that make a snapshot's description false, on every engine.
var hostileDescriptions = map[string]func(s *schema.Schema){
	"a name with a statement": func(s *schema.Schema) { s.Tables[0].Name.Name = "x\"`]; DROP DATABASE prod; --" },
	"a name with a line of psql": func(s *schema.Schema) {
		s.Tables[0].Name.Name = "line\n\\! touch owned\n; DROP DATABASE prod; --"
	},
	"a name with NUL":   func(s *schema.Schema) { s.Tables[0].Name.Name = "customer\x00" },
	"a long name":       func(s *schema.Schema) { s.Tables[0].Name.Name = strings.Repeat("c", 300) },
	"a look-alike name": func(s *schema.Schema) { s.Tables[0].Name.Name = "сustomer" },
	"another database":  func(s *schema.Schema) { s.Tables[0].Name.Schema = "prod" },
	"a type with a statement": func(s *schema.Schema) {
		s.Tables[0].Columns = slices.Clone(s.Tables[0].Columns)
		s.Tables[0].Columns[0].Type.Name = "int); DROP DATABASE prod; --"
	},
	"a function": func(s *schema.Schema) {
		s.Tables[0].Columns = slices.Clone(s.Tables[0].Columns)
		s.Tables[0].Columns[0].Default = &schema.Expr{Call: "load_file",
			Args: []schema.Expr{{Literal: &schema.Literal{Kind: "string", Value: "/etc/passwd"}}}}
	},
	"tables that are not there": func(s *schema.Schema) { s.Tables = nil },
}

func shareWith(t *testing.T, owner *api.Client, id string) {
	t.Helper()
	if _, err := owner.ShareOrg(t.Context(), id, "acme", nil); err != nil {
		t.Fatal(err)
	}
}

// used does everything with the pulled snapshot that a user can do, and returns the
// database that it was loaded into.
func used(t *testing.T, here *Agent, v victim) (destination string) {
	t.Helper()
	destination = v.fresh(t)
	if err := here.AddTarget(Target{Name: "shop", Destination: destination}); err != nil {
		t.Fatal(err)
	}
	pulled, err := here.newest("shop", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Describe(&pulled, nil); err != nil || len(pulled.Programs) < 4 {
		t.Errorf("show names %d programs: %v", len(pulled.Programs), err)
	}
	if err := here.SuggestRules(t.Context(), "shop", pulled.Name, filepath.Join(t.TempDir(), "first.yaml"),
		nil); err != nil {
		t.Errorf("first rules: %v", err)
	}
	if err := byRules(t, here, pulled); err != nil {
		t.Errorf("by rules: %v", err)
	}
	if err := bySQL(t, here, pulled); err != nil {
		t.Errorf("by SQL: %v", err)
	}
	for _, typ := range []snap.Type{snap.TypeSanitized, snap.TypeSnapshot} {
		r, err := here.Load(t.Context(), "shop", LoadOptions{Type: typ}, nil)
		if err != nil {
			t.Errorf("load %s: %v", typ, err)
		}
		if typ == snap.TypeSnapshot && len(r.LeftOut) < 4 {
			t.Errorf("left out: %v", r.LeftOut)
		}
	}
	for way, err := range otherWays(t, here, pulled) {
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
	}
	if err := here.AddTarget(Target{Name: "again", Source: destination}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Build(t.Context(), "again", BuildOptions{Subset: SubsetSpec{Percent: 50}}, nil); err != nil {
		t.Errorf("subset: %v", err)
	}
	return destination
}

// otherWays uses a snapshot in other ways than an ordinary load. It compares it with the target's
// newest one, replaces the content and single tables of an existing database, and creates, resets and
// drops a clone. It returns the result of each.
func otherWays(t *testing.T, here *Agent, s Snapshot) map[string]error {
	t.Helper()
	ctx, ended := t.Context(), map[string]error{}
	all, err := here.Snapshots(s.Target)
	if err != nil {
		t.Fatal(err)
	}
	_, ended["compare"] = here.Diff(ctx, s.Name, all[0].Name, DiffOptions{Table: "customer", Limit: 10}, nil)
	_, ended["tables"] = here.Load(ctx, s.Target, LoadOptions{Snapshot: s.Name, Only: []string{"*customer"}}, nil)
	if s.Engine != snap.SQLite {
		for name, into := range map[string]Into{"into the existing database": IntoExisting, "in place": InPlace} {
			_, ended[name] = here.Load(ctx, s.Target, LoadOptions{Snapshot: s.Name, Into: into}, nil)
		}
	}
	made, err := here.Clone(ctx, s.Target, CloneOptions{Name: "of-" + s.Target, Snapshot: s.Name}, nil)
	if ended["clone"] = err; err != nil {
		return ended
	}
	_, ended["reset"] = here.ResetClone(ctx, made[0].Name, CloneOptions{}, nil)
	ended["drop"] = here.DropClone(ctx, made[0].Name)
	return ended
}

func byRules(t *testing.T, here *Agent, s Snapshot) error {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	writeText(t, rules, "keep: ['*']\ntables:\n  \"*customer\": {columns: {email: {mask: email, shared: true}}}\n")
	_, err := here.Sanitize(t.Context(), s.Target, SanitizeOptions{Snapshot: s.Name, Rules: rules}, nil)
	return err
}

func bySQL(t *testing.T, here *Agent, s Snapshot) error {
	t.Helper()
	mask := filepath.Join(t.TempDir(), "mask.sql")
	writeText(t, mask, "UPDATE customer SET email = 'masked'; INSERT INTO log VALUES ('x');")
	_, err := here.Sanitize(t.Context(), s.Target, SanitizeOptions{Snapshot: s.Name, SQL: mask}, nil)
	return err
}

// tried uses an altered snapshot in every way, all of which may fail. It returns
// the result of the load with programs.
func tried(t *testing.T, here *Agent, v victim, target string) error {
	t.Helper()
	if err := here.AddTarget(Target{Name: target, Destination: v.fresh(t)}); err != nil {
		t.Fatal(err)
	}
	s, err := here.newest(target, "")
	if err != nil {
		t.Fatal(err)
	}
	_ = here.Describe(&s, nil)
	_ = byRules(t, here, s)
	_ = bySQL(t, here, s)
	_, _ = here.Load(t.Context(), target, LoadOptions{Snapshot: s.Name}, nil)
	otherWays(t, here, s)
	_, err = here.Load(t.Context(), target, LoadOptions{Snapshot: s.Name, WithPrograms: true,
		Trust: func(Preflight) error { return nil }}, nil)
	return err
}

// change simulates an owner's ordinary change of a loaded database.
const change = "UPDATE customer SET email = email"

// ours uses the hostile snapshot as one of the user's own organization, whose programs are loaded
// if they pass the checks. Each step may fail, except the build of what was loaded.
func ours(t *testing.T, here *Agent) {
	t.Helper()
	s := recorded(t, here, "shop", Ours)
	_ = bySQL(t, here, s)
	_, err := here.Load(t.Context(), "shop", LoadOptions{Snapshot: s.Name}, nil)
	t.Logf("as one of the user's own organization: %v; %v", err, otherWays(t, here, s))
	if _, err := here.Build(t.Context(), "again", BuildOptions{}, nil); err != nil {
		t.Errorf("build of what was loaded: %v", err)
	}
	if _, err := here.Build(t.Context(), "again", BuildOptions{Subset: SubsetSpec{Percent: 50}}, nil); err != nil {
		t.Logf("subset of what was loaded: %v", err)
	}
}

// recorded changes the recorded origin of the hostile snapshot.
func recorded(t *testing.T, here *Agent, target string, origin Origin) Snapshot {
	t.Helper()
	all, err := here.Snapshots(target)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(s Snapshot) bool { return s.Type == snap.TypeSnapshot })
	if at < 0 {
		t.Fatal("the snapshot is gone")
	}
	all[at].From = Provenance{Origin: origin}
	if err := here.writeRecord(all[at]); err != nil {
		t.Fatal(err)
	}
	return all[at]
}

// mine uses the hostile snapshots as the user's own. Their programs then do run, which proves that
// the comparisons in testHostile can find changes. SQL for masking is not part of this, because it
// always runs while no trigger fires.
func (a attack) mine(t *testing.T, here map[string]*Agent, v victim, altered map[string]string, destination string) {
	t.Helper()
	if a.harmless {
		return
	}
	before := v.state(t)
	for target, what := range altered {
		if slices.Contains(a.works, what) {
			s := recorded(t, here[target], target, Mine)
			_, err := here[target].Load(t.Context(), target, LoadOptions{Snapshot: s.Name}, nil)
			after := v.state(t)
			if maps.Equal(before, after) {
				t.Errorf("%q does nothing to those who load it as their own: %v", what, err)
			}
			before = after
		}
	}
	s := recorded(t, here["shop"], "shop", Mine)
	if _, err := here["shop"].Load(t.Context(), "shop", LoadOptions{Snapshot: s.Name}, nil); err == nil {
		v.exec(t, destination, change)
	}
	after := v.state(t)
	for _, key := range a.does(v) {
		if before[key] == after[key] {
			t.Errorf("the attack does not change %s of those who load it as their own", key)
		}
	}
}

// same fails the test if anything has changed.
func (v victim) same(t *testing.T, before map[string]string, what string) {
	t.Helper()
	after := v.state(t)
	for key := range maps.Keys(before) {
		if before[key] != after[key] {
			t.Errorf("%s changed %s:\n%s\nwas\n%s", what, key, onlyIn(after[key], before[key]),
				onlyIn(before[key], after[key]))
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok {
			t.Errorf("%s made %s", what, key)
		}
	}
}

// onlyIn returns the lines that only the first text has.
func onlyIn(text, other string) string {
	has := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"),
		func(line string) bool { return slices.Contains(has, line) }), "\n")
}

// files adds the path of every file of a folder to a map, with the SHA-256 of its content.
func files(t *testing.T, all map[string]string, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
