package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"snap"
	"snap/internal/archive"
	"snap/internal/disk"
	"snap/internal/engine"
	"snap/internal/sanitize"
)

// SuggestRules writes an initial rules file for a target to path, based on the schema and sampled
// values of the named snapshot, or of the newest original. It does not overwrite a file. No data
// leaves this machine.
func (a *Agent) SuggestRules(ctx context.Context, target, name, path string, p Progress, identity ...string) error {
	t, err := a.Target(target)
	if err != nil {
		return err
	}
	original, err := a.original(t.Name, name)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return &snap.Error{Code: snap.CodeConflict, Detail: fmt.Sprintf("the file %s already exists", path),
			Hint: fmt.Sprintf("use it: `snapcli sanitize %s --rules %s`; or draft another file: --init --rules FILE",
				snap.ShellWord(t.Name), snap.ShellWord(path))}
	}
	contents, err := a.inspect(ctx, original, identity, p)
	if err != nil {
		return err
	}
	text, err := sanitize.Suggest(contents)
	if err != nil {
		return err
	}
	return diskError(disk.Replace(path, text, 0o644), "write "+path)
}

// inspect reads a snapshot's contents, with samples of every column.
func (a *Agent) inspect(ctx context.Context, s Snapshot, identity []string, p Progress) (engine.Contents, error) {
	m, err := a.openMasking(ctx, s, identity, p)
	if err != nil {
		return engine.Contents{}, err
	}
	defer m.close()
	return m.inspect(ctx)
}

// masking is an opened snapshot that is masked by rules.
type masking struct {
	reader   *archive.Reader
	dump     engine.Dump
	rewriter engine.Rewriter
	options  engine.Options
	done     func()
}

func (m *masking) inspect(ctx context.Context) (engine.Contents, error) {
	c, err := m.rewriter.Inspect(ctx, m.dump, sanitize.Samples, m.options)
	c.Schema = m.dump.Info.Schema
	return c, diskError(err, "inspect the snapshot")
}

func (m *masking) close() {
	m.reader.Close()
	m.done()
}

func (a *Agent) openMasking(ctx context.Context, s Snapshot, identity []string, p Progress) (*masking, error) {
	e, err := a.engineFor(s.Engine)
	if err != nil {
		return nil, err
	}
	rewriter, ok := e.(engine.Rewriter)
	if !ok {
		return nil, snap.Invalid(fmt.Sprintf("snapshots of %s cannot be masked by rules yet", s.Engine),
			"use a SQL file: --sql FILE")
	}
	dir, done, err := a.workDir()
	if err != nil {
		return nil, err
	}
	r, err := a.openVerified(ctx, s, p, identity...)
	if err != nil {
		done()
		return nil, err
	}
	dump, err := a.dumpOf(s, r)
	if err != nil {
		r.Close()
		done()
		return nil, err
	}
	bytes, begin := p.phases("inspect")
	return &masking{reader: r, dump: dump, rewriter: rewriter, done: done,
		options: engine.Options{Jobs: jobsOf(), TempDir: dir, Progress: bytes, Phase: begin}}, nil
}

// byRules makes a masked copy of a snapshot by column rules, followed by SQL if there is any.
func (a *Agent) byRules(ctx context.Context, w maskedCopy, rules *sanitize.Rules, sql sanitize.SQL,
	p Progress) (s Snapshot, err error) {
	key, err := a.maskKey(rules)
	if err != nil {
		return Snapshot{}, err
	}
	m, err := a.openMasking(ctx, w.original, w.identity, p)
	if err != nil {
		return Snapshot{}, err
	}
	defer m.close()
	m.options.Observe = rules.Every
	contents, err := m.inspect(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	prepared, err := rules.Prepare(contents, key)
	if err != nil {
		return Snapshot{}, err
	}
	d := w.draft(m.reader.Manifest(), archive.Sanitized{
		From: w.original.Name, Rules: rules.Digest(), Masked: prepared.Coverage.Masked, Kept: prepared.Coverage.Kept,
		Dropped: prepared.Coverage.Dropped, LeakScan: &archive.LeakScan{Values: len(prepared.Originals)},
	})
	d.masks = &prepared
	m.options.Begin("mask")
	literals := prepared.Literals(rules.SchemaLiterals)
	prepared.Plan.Schema = literals.Search
	rewrite := func(to io.Writer) (engine.Info, error) {
		info, err := m.rewrite(ctx, to, prepared, contents, literals, rules.SchemaLiterals)
		d.Sanitized.LeakScan.Schema = literals.Found()
		return dropInvalidSchema(d.Engine, info), err
	}
	defer func() {
		if note := literals.Note(); note != "" && err == nil {
			s.Warnings = append(s.Warnings, note)
		}
	}()
	if sql.Text == "" {
		return a.writeProven(ctx, w, m, d, rewrite, p)
	}
	intermediate, err := writeIntermediate(d, m.options, rewrite)
	if err != nil {
		return Snapshot{}, diskError(err, "write the masked copy")
	}
	defer intermediate.Close()
	d.Sanitized.SQL = sql.SHA256
	dump := dumpIn(intermediate)
	dump.Trust = m.dump.Trust
	return a.bySQL(ctx, w.target, dump, sql, d, p)
}

// rewrite writes the masked rows. It fails if an original value is found among them or, unless the
// mode says otherwise, in the schema.
func (m *masking) rewrite(ctx context.Context, to io.Writer, p sanitize.Prepared, c engine.Contents,
	literals *sanitize.Literals, mode string) (engine.Info, error) {
	scanner := sanitize.NewScanner(to, p.Watch)
	info, err := m.rewriter.Rewrite(ctx, m.dump, p.Plan, scanner, m.options)
	if err != nil {
		return info, err
	}
	if info.Schema == nil && m.dump.Trust != engine.Foreign {
		info.Schema = m.dump.Info.Schema // rules change only rows, so the schema remains
	}
	if scanner.Leaked() {
		coincidences, err := m.locate(ctx, p, c)
		if err != nil {
			return info, err
		}
		scanner.Ignore(coincidences)
	}
	if err := literals.Result(mode); err != nil {
		return info, err
	}
	if info.Schema, err = literals.Description(info.Schema); err != nil || literals.Explains(scanner) {
		return info, err
	}
	return info, scanner.Result()
}

// writeProven writes a masked copy. If a server for scratch databases can be reached, it proves
// that the copy loads there before it keeps the copy.
func (a *Agent) writeProven(ctx context.Context, w maskedCopy, m *masking, d draft,
	rewrite func(io.Writer) (engine.Info, error), p Progress) (Snapshot, error) {
	pr, err := a.proofOf(w.target, d.Engine, m.options.TempDir)
	if err != nil {
		return Snapshot{}, err
	}
	if pr == nil {
		return a.writeSnapshot(ctx, d, rewrite)
	}
	pr.trust, pr.masks, pr.jobs, pr.p = m.dump.Trust, d.masks.Plan, d.jobs, p
	d.proof = pr
	s, err := a.writeSnapshot(ctx, d, func(to io.Writer) (engine.Info, error) { return pr.verify(ctx, to, rewrite) })
	if err == nil && pr.note != "" {
		s.Warnings = append(s.Warnings, pr.note)
	}
	return s, err
}

// locate masks the dump a second time to report which columns contain original values. It returns
// the values that occur by coincidence, in every stored form.
func (m *masking) locate(ctx context.Context, p sanitize.Prepared, c engine.Contents) ([]sanitize.Watched, error) {
	l := p.Locator()
	if _, err := m.rewriter.Rewrite(ctx, m.dump, l.Plan(p.Plan, c), io.Discard, m.options); err != nil {
		return nil, err
	}
	return p.Forms(l.Coincidences()...), l.Result(false)
}

// writeIntermediate writes the output of the rules to a temporary file that cannot be mistaken for
// a finished snapshot.
func writeIntermediate(d draft, o engine.Options, rewrite func(io.Writer) (engine.Info, error)) (*archive.Reader,
	error) {
	file, err := os.OpenFile(filepath.Join(o.TempDir, "intermediate"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	d.Name, d.Created, d.to = "intermediate", time.Unix(0, 0), nil
	_, _, err = writeArchive(file, d, rewrite)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	return archive.OpenOwn(file.Name())
}

// maskKey returns the key of the rules, or this machine's key.
func (a *Agent) maskKey(rules *sanitize.Rules) ([]byte, error) {
	if rules.Key == "" {
		return a.ownMaskKey()
	}
	key, err := expand(rules.Key, a.env)
	var e *snap.Error
	if errors.As(err, &e) {
		return nil, snap.Usage(rules.Where("key")+": "+strings.Replace(e.Detail, "the configuration", "the key", 1),
			"set it to at least 16 characters, or omit key to use the one of this machine")
	}
	if len(key) < 16 {
		return nil, snap.Usage(rules.Where("key")+": the key of the rules is shorter than 16 characters: masked "+
			"values could be guessed", "use a long random one, with ${NAME} from the environment")
	}
	return []byte(key), nil
}

// ownMaskKey returns this machine's key and creates it if necessary. Concurrent commands get the
// same key. It does not replace a damaged key, because all values would be masked differently from
// then on.
func (a *Agent) ownMaskKey() ([]byte, error) {
	if err := os.MkdirAll(a.data, 0o700); err != nil {
		return nil, diskError(err, "create the data folder")
	}
	path := filepath.Join(a.data, "mask.key")
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return nil, diskError(err, "lock the mask key")
	}
	defer lock.Unlock()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var random [32]byte
		rand.Read(random[:]) // never returns an error
		key := hex.EncodeToString(random[:])
		return []byte(key), diskError(disk.Replace(path, []byte(key+"\n"), 0o600), "write the mask key")
	}
	if err != nil {
		return nil, fmt.Errorf("read the mask key: %w", err)
	}
	key := bytes.TrimSpace(text)
	if len(key) < 32 {
		return nil, snap.Usage(fmt.Sprintf("the mask key in %s is damaged: it has fewer than 32 characters", path),
			"restore the file from a backup; if you delete it, snapcli creates a new key and masks values "+
				"differently from before")
	}
	return key, nil
}
