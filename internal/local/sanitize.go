package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"filippo.io/age"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/engine/sqlite"
	"snap/internal/sanitize"
)

// SanitizeOptions select what to sanitize and how. If Rules and SQL are both empty, those of the
// target's configuration apply. If Snapshot is empty, the newest original is sanitized.
type SanitizeOptions struct {
	Snapshot string
	SQL      string // path of a SQL file
	Rules    string // path of a rules file
	Jobs     int
	Identity []string // files of private keys that decrypt the original; nil: those of the configuration
	Encrypt  Encryption
	Named    func(name string) error // as in [BuildOptions]
}

// Sanitize makes a masked copy of an original snapshot, as a new snapshot of type sanitized: by
// column rules, by a SQL file, or by the rules and then the file. The original is not changed. A
// failure leaves no sanitized snapshot.
//
// Rules are applied on this machine. A SQL file runs in a scratch database that is removed
// afterwards: for SQLite a file in the data directory; for PostgreSQL and MySQL a database on the
// target's scratch server, or otherwise on the destination's server. Nothing runs on the source.
func (a *Agent) Sanitize(ctx context.Context, target string, o SanitizeOptions, p Progress) (s Snapshot, err error) {
	t, err := a.Target(target)
	if err != nil {
		return Snapshot{}, err
	}
	rules, sql, err := a.howToMask(t, o)
	if err != nil {
		return Snapshot{}, err
	}
	original, err := a.original(t.Name, o.Snapshot)
	if err != nil {
		return Snapshot{}, err
	}
	if _, _, err := a.signer(); err != nil { // before any work is done
		return Snapshot{}, err
	}
	w := maskedCopy{target: t, original: original, identity: o.Identity, jobs: jobsOf(o.Jobs, t.Jobs),
		named: o.Named}
	if w.to, err = a.copyRecipients(o.Encrypt, t, original); err != nil {
		return Snapshot{}, err
	}
	cleaned := a.cleanUpTarget(ctx, t)
	defer func() { s.Warnings = append(s.Warnings, cleaned()...) }()
	if rules != nil {
		return a.byRules(ctx, w, rules, sql, p)
	}
	r, err := a.openVerified(ctx, original, p, o.Identity...)
	if err != nil {
		return Snapshot{}, err
	}
	defer r.Close()
	dump, err := a.dumpOf(original, r)
	if err != nil {
		return Snapshot{}, err
	}
	d := w.draft(r.Manifest(), archive.Sanitized{From: original.Name, SQL: sql.SHA256})
	return a.bySQL(ctx, t, dump, sql, d, p)
}

// maskedCopy describes a masked copy to be made of an original.
type maskedCopy struct {
	target   Target
	original Snapshot
	identity []string
	to       []age.Recipient
	jobs     int
	named    func(string) error
}

// draft returns the draft of the copy. For a subset it records which tables had conditions but not
// the conditions, which may contain values.
func (w maskedCopy) draft(original archive.Manifest, how archive.Sanitized) draft {
	subset := original.Subset
	if subset != nil {
		tables := map[string]string{}
		for table := range subset.Where {
			tables[table] = ""
		}
		subset = &archive.Subset{Where: tables, Percent: subset.Percent, Start: subset.Start}
	}
	d := draft{from: w.original.From, source: w.original, to: w.to, jobs: w.jobs, named: w.named}
	d.Manifest = archive.Manifest{
		Target: w.target.Name, Type: snap.TypeSanitized, Engine: w.original.Engine, Sanitized: &how,
		Subset: subset, Tables: original.Tables, // for the number of rows in the source
	}
	return d
}

// copyRecipients returns the recipients of a masked copy. The copy of an encrypted original is
// never unencrypted by default.
func (a *Agent) copyRecipients(e Encryption, t Target, original Snapshot) ([]age.Recipient, error) {
	to, err := a.recipients(e, t)
	if err == nil && to == nil && original.Encrypted > 0 && !e.None {
		err = snap.Usage(fmt.Sprintf("the snapshot %s is encrypted, and no recipients are set for the masked copy",
			original.Name),
			"name the recipients with --encrypt-to RECIPIENT, or write an unencrypted copy with --no-encrypt")
	}
	return to, err
}

// bySQL makes a masked copy of a dump by running SQL in a scratch database.
func (a *Agent) bySQL(ctx context.Context, t Target, dump engine.Dump, sql sanitize.SQL, d draft,
	p Progress) (s Snapshot, err error) {
	dir, done, err := a.workDir()
	if err != nil {
		return Snapshot{}, err
	}
	defer done()
	on, err := a.scratchServer(t, d.Engine, dir)
	if err != nil {
		return Snapshot{}, err
	}
	bytes, begin := p.phases("restore")
	var notices []string
	defer func() { s.Warnings = append(notices, s.Warnings...) }()
	scratch, err := on.engine.Restore(ctx, on.url, dump,
		engine.Options{Jobs: d.jobs, TempDir: dir, Progress: bytes, Phase: begin,
			Notice: func(sentence string) { notices = append(notices, sentence) }})
	if err != nil {
		return Snapshot{}, diskError(err, "restore the scratch copy")
	}
	defer scratch.Drop(context.WithoutCancel(ctx))
	begin("mask")
	if err := sql.Apply(ctx, scratch); err != nil {
		return Snapshot{}, err
	}
	on.url, d.sourceSchema = scratch.URL(), dump.Info.Schema
	d.dumper, _ = scratch.(engine.Dumper)
	scan := leakScan{engine: on.engine, before: dump, sql: sql.Text, dir: dir}
	if err := scan.begin(ctx); err != nil {
		return Snapshot{}, err
	}
	if d.Sanitized.LeakScan == nil && scan.possible {
		d.Sanitized.LeakScan = &archive.LeakScan{}
	}
	if scan.possible {
		d.Sanitized.LeakScan.Values += len(scan.originals)
	}
	d.verify = scan.verify
	return a.newSnapshot(ctx, on, d, p)
}

// howToMask reads the rules and SQL that the options name, otherwise those of the target's
// configuration. It returns an error if there are none: an unmasked copy must not be called
// sanitized.
func (a *Agent) howToMask(t Target, o SanitizeOptions) (rules *sanitize.Rules, sql sanitize.SQL, err error) {
	if o.Rules == "" && o.SQL == "" {
		o.Rules, o.SQL = a.relativeToConfig(t.Sanitize.Rules), a.relativeToConfig(t.Sanitize.SQL)
	}
	if o.Rules == "" && o.SQL == "" {
		return nil, sql, snap.Usage(fmt.Sprintf("the target %q has no masking rules", t.Name),
			fmt.Sprintf("draft rules with `snapcli sanitize %s --init`, or give a file: --rules FILE or --sql FILE",
				snap.ShellWord(t.Name)))
	}
	if o.Rules != "" {
		if rules, err = sanitize.ReadRules(o.Rules); err != nil {
			var e *snap.Error
			if errors.As(err, &e) && e.Code == snap.CodeNotFound {
				e.Hint = fmt.Sprintf("draft rules with `snapcli sanitize %s --init --rules %s`",
					snap.ShellWord(t.Name), snap.ShellWord(o.Rules))
			}
			return nil, sql, err
		}
	}
	if o.SQL != "" {
		sql, err = sanitize.ReadSQL(o.SQL)
	}
	return rules, sql, err
}

// relativeToConfig resolves a path in the configuration relative to the configuration file.
func (a *Agent) relativeToConfig(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(a.ConfigPath()), path)
}

// original returns the snapshot to mask: the named one, or the newest one that is not sanitized.
func (a *Agent) original(target, name string) (Snapshot, error) {
	if name == "" {
		return a.newest(target, snap.TypeSnapshot)
	}
	s, err := a.Snapshot(name)
	if err != nil {
		return Snapshot{}, err
	}
	if s.Target != target {
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s belongs to the target %q", s.Name, s.Target),
			fmt.Sprintf("use the target %s instead of %s", snap.ShellWord(s.Target), snap.ShellWord(target)))
	}
	return s, nil
}

// scratchServer returns the server for scratch copies: the target's scratch server, otherwise the
// destination's server. It is never the source or a production database. For SQLite, it is a file
// in dir.
func (a *Agent) scratchServer(t Target, kind snap.Engine, dir string) (database, error) {
	if kind == snap.SQLite {
		return a.databaseAt(direct(sqlite.URLOf(filepath.Join(dir, "scratch.db"))))
	}
	hint := fmt.Sprintf("name a %s server for scratch copies with `snapcli targets add %s --scratch URL`", kind,
		snap.ShellWord(t.Name))
	if t.scratch().raw == "" {
		return database{}, snap.Usage(fmt.Sprintf("the target %q has neither a destination nor a scratch server, and "+
			"no other server is used for scratch copies", t.Name), hint)
	}
	on, err := a.databaseAt(t.scratch())
	if err != nil {
		return database{}, err
	}
	t.Production = t.Production && t.Scratch == "" // production applies to the destination only
	if why := a.production(t, on); why != "" {
		return database{}, snap.Forbidden(fmt.Sprintf("%s %s, so no scratch copies are made there", on.shown,
			why), hint)
	}
	if on.kind != kind {
		return database{}, snap.Usage(fmt.Sprintf("the target %q has no %s server to make the scratch copy on", t.Name,
			kind), hint)
	}
	return on, nil
}
