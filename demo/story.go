package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"snap/internal/sample"
)

// play tells the story. It returns at the first promise that does not hold.
func (w *world) play(ctx context.Context) error {
	s := &story{world: w}
	for _, chapter := range []func(context.Context) error{
		s.beginning, s.signIn, s.build, s.push, s.private, s.share, s.restart, s.pull, s.unshare,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	w.out.line("\n%s",
		bold.Render(fmt.Sprintf("The whole workflow succeeded in %.0f s.", time.Since(w.out.began).Seconds())))
	return nil
}

// story holds the results of earlier chapters for later ones.
type story struct {
	*world
	id     string         // of the snapshot in the cloud
	before []sample.Table // Alice's production database at the beginning
	link   string         // presigned URL that Mia got while she was allowed to pull
}

func (s *story) beginning(ctx context.Context) error {
	s.out.chapter("A service, two organizations, and a shop's database")
	s.out.command(operator, "snapcloud", []string{"serve", "--config", s.config})
	if err := s.startService(ctx); err != nil {
		return fmt.Errorf("snapcloud serve: %w", err)
	}
	s.out.line("the service is ready at %s: SQLite and a folder, nothing else", s.url)
	began := time.Now()
	rows, err := sample.Write(ctx, s.database(alice), sample.Options{})
	if err != nil {
		return err
	}
	if rows < 200_000 {
		return fmt.Errorf("the sample has only %d rows", rows)
	}
	s.out.line("Alice of Acme has a production database: %d rows of customers, orders and staff, made in %.1f s", rows,
		time.Since(began).Seconds())
	if err := os.WriteFile(s.mask(), []byte(sample.MaskSQL), 0o600); err != nil {
		return err
	}
	s.before, err = sample.Fingerprint(ctx, s.database(alice))
	return err
}

func (s *story) signIn(ctx context.Context) error {
	s.out.chapter("Sign in: a code and a browser, no secret typed into the terminal")
	if err := s.allSignIn(ctx); err != nil {
		return err
	}
	s.out.aside("Mia and Vic of Acme and Gary of Globex sign in the same way")
	return s.show(ctx, alice, "whoami")
}

func (s *story) build(ctx context.Context) error {
	s.out.chapter("Take a snapshot and mask it")
	for _, args := range [][]string{{"build", "shop"}, {"sanitize", "shop"}, {"snapshots"}} {
		if err := s.show(ctx, alice, args...); err != nil {
			return err
		}
	}
	after, err := sample.Fingerprint(ctx, s.database(alice))
	if err != nil {
		return err
	}
	if err := compareTables(s.before, after); err != nil {
		return fmt.Errorf("the production database was changed: %w", err)
	}
	s.out.checked("the production database is untouched")
	return nil
}

func (s *story) push(ctx context.Context) error {
	s.out.chapter("Push it to the cloud")
	if err := s.show(ctx, alice, "push", "shop", "--cloud", "--type", "sanitized"); err != nil {
		return err
	}
	seen, err := s.snapshotsOf(ctx, alice)
	if err != nil {
		return err
	}
	if len(seen) != 1 {
		return fmt.Errorf("alice sees %d snapshots after her first push, not one", len(seen))
	}
	s.id = seen[0].ID
	return nil
}

func (s *story) private(ctx context.Context) error {
	s.out.chapter("It starts private")
	if err := s.checkSeenBy(ctx, true, alice); err != nil {
		return err
	}
	s.out.aside("Alice asks why Vic cannot see it")
	return s.show(ctx, alice, "cloud", "snapshots", "access", s.id, "--user", vic.email())
}

func (s *story) share(ctx context.Context) error {
	s.out.chapter("Share: with a group, with another organization for a week, with everyone")
	for _, step := range []struct {
		args []string
		by   []person
	}{
		{[]string{"--group", "eng"}, []person{alice, mia}},
		{[]string{"--org", "globex", "--expires-in", "7d"}, []person{alice, mia, gary}},
		{nil, callers()},
	} {
		if err := s.show(ctx, alice, append([]string{"cloud", "snapshots", "share", s.id},
			step.args...)...); err != nil {
			return err
		}
		if err := s.checkSeenBy(ctx, step.args == nil, step.by...); err != nil {
			return err
		}
	}
	if err := s.show(ctx, alice, "cloud", "snapshots", "shares", s.id); err != nil {
		return err
	}
	s.out.aside("Mia is not an admin and does not see with whom else it is shared")
	if err := s.show(ctx, mia, "cloud", "snapshots", "shares", s.id); err != nil {
		return err
	}
	s.out.aside("Vic is allowed to see it, but not to share it")
	return s.checkRefused(ctx, vic, exitForbidden, "cloud", "snapshots", "share", s.id, "--group", "eng")
}

func (s *story) restart(ctx context.Context) error {
	s.out.chapter("Restart the service: nothing is lost")
	s.service.stop()
	if err := s.startService(ctx); err != nil {
		return fmt.Errorf("snapcloud serve, again: %w", err)
	}
	return s.checkSeenBy(ctx, false, callers()...)
}

func (s *story) pull(ctx context.Context) error {
	s.out.chapter("Pull it as somebody else, and load it into their own database")
	for _, args := range [][]string{{"pull", "shop", "--cloud", "--snapshot-id", s.id}, {"load", "shop", "--yes"}} {
		if err := s.show(ctx, mia, args...); err != nil {
			return err
		}
	}
	if err := s.checkLoaded(ctx, mia); err != nil {
		return err
	}
	s.out.aside("Gary of Globex has no target named shop; pull adds it")
	for _, args := range [][]string{
		{"pull", "shop", "--cloud"},
		{"targets", "add", "shop", "--destination", "sqlite://" + s.database(gary)},
		{"load", "shop"},
	} {
		if err := s.show(ctx, gary, args...); err != nil {
			return err
		}
	}
	if err := s.checkLoaded(ctx, gary); err != nil {
		return err
	}
	var err error
	s.link, err = s.downloadLink(ctx, mia)
	return err
}

// checkLoaded checks that a person's database has the masked content of the production database,
// table by table. For comparison, the demo masks a copy of the production database without snapcli.
func (s *story) checkLoaded(ctx context.Context, p person) error {
	want, err := s.maskedCopy(ctx)
	if err != nil {
		return err
	}
	got, err := sample.Fingerprint(ctx, s.database(p))
	if err != nil {
		return err
	}
	whole := "every table, index, view and trigger"
	if p.org != alice.org {
		// A snapshot of another organization is loaded without its triggers and other code.
		want, got, whole = withoutSchema(want), withoutSchema(got), "every row of every table"
	}
	if err := compareTables(want, got); err != nil {
		return fmt.Errorf("the database of %s is not what alice masked: %w", p.prompt(), err)
	}
	s.out.line("")
	for _, t := range got {
		s.out.line("  %-13s %7d rows  %s", t.Name, t.Rows, t.Sum[:16])
	}
	s.out.checked("%s in the database of %s equals the masked original", whole, p.prompt())
	return nil
}

func (s *story) unshare(ctx context.Context) error {
	s.out.chapter("Unshare: gone at once, everywhere")
	for _, args := range [][]string{nil, {"--group", "eng"}, {"--org", "globex"}} {
		if err := s.show(ctx, alice, append([]string{"cloud", "snapshots", "unshare", s.id}, args...)...); err != nil {
			return err
		}
	}
	if err := s.checkSeenBy(ctx, true, alice); err != nil {
		return err
	}
	s.out.aside("the same pull as before, and a pull of a snapshot that never existed")
	pull := []string{"pull", "shop", "--cloud", "--snapshot-id"}
	if err := s.checkRefused(ctx, mia, exitNotFound, append(pull, s.id)...); err != nil {
		return err
	}
	if err := s.checkRefused(ctx, gary, exitNotFound, append(pull, "snap_0000000000000000")...); err != nil {
		return err
	}
	status, err := fetch(ctx, s.link)
	if err != nil {
		return err
	}
	if status != 404 {
		return fmt.Errorf("the download link that Mia got earlier responds with %d after the unsharing, not 404",
			status)
	}
	s.out.checked("even the download link that Mia still has no longer works")
	return nil
}

// Exit codes of snapcli that the story expects.
const (
	exitNotFound  = 3
	exitForbidden = 5
)

// checkRefused runs a command that must fail with this exit code.
func (s *story) checkRefused(ctx context.Context, p person, want int, args ...string) error {
	code, err := s.attempt(ctx, p, args...)
	if err != nil {
		return err
	}
	if code != want {
		return fmt.Errorf("snapcli %v, run by %s, ended with exit code %d, not %d", args, p.name, code, want)
	}
	s.out.checked("refused, exit code %d", code)
	return nil
}

// withoutSchema returns tables without the entry "schema", which represents all definitions of the
// database.
func withoutSchema(tables []sample.Table) []sample.Table {
	return slices.DeleteFunc(slices.Clone(tables), func(t sample.Table) bool { return t.Name == "schema" })
}

// compareTables returns an error that lists the differences between the tables of two databases.
func compareTables(want, got []sample.Table) error {
	var differ error
	if len(want) != len(got) {
		differ = fmt.Errorf("%d tables instead of %d", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			differ = errors.Join(differ, fmt.Errorf(
				"%s has %d rows (hash %.12s), instead of %s with %d rows (hash %.12s)",
				got[i].Name, got[i].Rows, got[i].Sum, want[i].Name, want[i].Rows, want[i].Sum))
		}
	}
	return differ
}
