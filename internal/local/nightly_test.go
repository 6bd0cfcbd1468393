package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/internal/nightly"
	"snap/internal/servertest"
)

// nightShop is a shop with a masking rule, a storage profile and a schedule.
func nightShop(t *testing.T, checks ...Check) (*cloneShop, nightly.Agent) {
	t.Helper()
	s := &cloneShop{shop: newShop(t), kind: snap.SQLite}
	noon := time.Until(time.Now().Truncate(24 * time.Hour).Add(12 * time.Hour)) // far from the time of the schedule
	s.now = func() time.Time { return time.Now().Add(noon + time.Duration(s.late.Load())) }
	target, err := s.Target(shopTarget)
	if err != nil {
		t.Fatal(err)
	}
	target.Sanitize.Rules = s.rulesFile(t,
		"keep: ['*']\ntables:\n  customer: {columns: {email: {mask: email, shared: true}}}\n")
	target.Schedule, target.TimeZone, target.Checks = "17 3 * * *", "Europe/Berlin", checks
	s.retarget(t, target)
	place := StorageProfile{URL: "file://" + filepath.Join(s.dir, "backups")}
	if err := s.file.addProfile("backups", place); err != nil {
		t.Fatal(err)
	}
	return s, nightly.Agent{Records: s.Runs(), Now: s.now, Report: func(nightly.Event) {}}
}

// task returns the nightly job of the shop.
func (s *cloneShop) task(t *testing.T) nightly.Task {
	t.Helper()
	target, err := s.Target(shopTarget)
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.Nightly(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// stored lists the copies in the storage profile.
func (s *cloneShop) stored(t *testing.T) map[string]bool {
	t.Helper()
	store, _, err := s.profile(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.Snapshots(t.Context(), shopTarget)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, one := range all {
		if one.Type != snap.TypeSanitized {
			t.Errorf("%s is not masked", one.Name)
		}
		names[one.Name] = true
	}
	return names
}

// The nightly job pushes a masked copy that was loaded and checked, and keeps no original.
func TestNightlyJob(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	s, agent := nightShop(t, Check{SQL: "SELECT count(*) FROM customer", Expect: "2000"},
		Check{SQL: "SELECT count(*) > 10 FROM customer", Expect: "true"},
		Check{SQL: "SELECT count(*) FROM customer WHERE email LIKE 'person-%'", Expect: "0.0"})
	var first nightly.Run
	for night := range 9 {
		s.late.Store(int64(time.Duration(night) * 24 * time.Hour))
		run, err := agent.RunNow(t.Context(), s.task(t))
		if err != nil || run.State != nightly.Done {
			t.Fatalf("%+v, %v", run, err)
		}
		if night == 0 {
			first = run
		}
	}
	if n := len(s.stored(t)); n != 9 {
		t.Errorf("%d copies were pushed", n)
	}
	all, err := s.Snapshots("")
	if err != nil || len(all) != 7 {
		t.Errorf("%d snapshots on this machine, want those of a week; %v", len(all), err)
	}
	for _, one := range all {
		if one.Type != snap.TypeSanitized || one.Name == first.Masked {
			t.Errorf("%s (%s) stays", one.Name, one.Type)
		}
	}
}

// While no copy can be pushed, the job keeps the masked copies of a week, and no original.
func TestNightlyJobThatCannotPush(t *testing.T) {
	t.Parallel()
	s, agent := nightShop(t)
	objects := filepath.Join(s.dir, "backups", "objects")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		t.Fatal(err)
	}
	for n := range 256 { // files in place of the folders that the profile needs
		if err := os.WriteFile(filepath.Join(objects, fmt.Sprintf("%02x", n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var run nightly.Run
	for _, day := range []int{0, 8} {
		s.late.Store(int64(time.Duration(day) * 24 * time.Hour))
		var err error
		run, err = agent.RunNow(t.Context(), s.task(t))
		if err != nil || run.State != nightly.Failed || run.Step != "push" || run.Pushed != "" || run.Code == "" {
			t.Errorf("%+v, %v", run, err)
		}
	}
	all, err := s.Snapshots("")
	if err != nil || len(all) != 1 || all[0].Name != run.Masked {
		t.Errorf("%+v, %v", all, err)
	}
}

// A copy that fails a check is not pushed, and without rules nothing is pushed.
func TestNightlyJobFailsClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checks  []Check
		change  func(*Target)
		problem string
	}{
		"a check that fails":  {[]Check{{"SELECT count(*) FROM customer", "1"}}, nil, `returned "2000" instead of "1"`},
		"several rows":        {[]Check{{"SELECT id FROM customer", "1"}}, nil, "the query returns several rows"},
		"two columns":         {[]Check{{"SELECT 1, 2", "1"}}, nil, "the query returns 2 columns"},
		"NULL":                {[]Check{{"SELECT NULL", ""}}, nil, `returned "NULL"`},
		"a check that writes": {[]Check{{"DELETE FROM customer RETURNING 1", "1"}}, nil, "the SQL failed"},
		"not SQL":             {[]Check{{"SELEC", "1"}}, nil, "the SQL failed"},
		"no rules":            {nil, func(t *Target) { t.Sanitize = SanitizeSpec{} }, "no masking rules"},
		"no source":           {nil, func(t *Target) { t.Source = "" }, "no source"},
		"nothing wrong":       {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, agent := nightShop(t, c.checks...)
			if c.change != nil {
				target, _ := s.Target(shopTarget)
				c.change(&target)
				s.retarget(t, target)
			}
			run, err := agent.RunNow(t.Context(), s.task(t))
			if c.problem == "" {
				if err != nil || run.State != nightly.Done {
					t.Errorf("%+v, %v", run, err)
				}
				return
			}
			if err != nil || run.State != nightly.Failed || !strings.Contains(run.Problem, c.problem) {
				t.Errorf("%+v, %v", run, err)
			}
			if n := len(s.stored(t)); n != 0 {
				t.Errorf("%d copies were pushed", n)
			}
			all, _ := s.Snapshots("")
			for _, one := range all {
				if one.Type != snap.TypeSanitized {
					t.Errorf("the original %s stays", one.Name)
				}
			}
		})
	}
}

// Bad schedules and checks are found by `snapcli config check`, before the first night.
func TestScheduleFlaws(t *testing.T) {
	t.Parallel()
	s, _ := nightShop(t)
	target, _ := s.Target(shopTarget)
	for want, change := range map[string]func(*Target){
		"":                   func(*Target) {},
		"is not a schedule":  func(t *Target) { t.Schedule = "soon" },
		"there is no time":   func(t *Target) { t.TimeZone = "Mars" },
		"no masking rules":   func(t *Target) { t.Sanitize = SanitizeSpec{} },
		"no source to build": func(t *Target) { t.Source = "" },
		"a check has no sql": func(t *Target) { t.Checks = []Check{{Expect: "1"}} },
	} {
		changed := target
		change(&changed)
		s.retarget(t, changed)
		var found []string
		for _, f := range s.Flaws() {
			found = append(found, f.Err.Error())
		}
		if all := strings.Join(found, "\n"); want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%q: %q", want, all)
		}
	}
}

// The expected value of a check may be written as text, as a number or as true or false.
func TestChecksInTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	text := "targets:\n  shop:\n    schedule: 17 3 * * *\n    checks:\n      - {sql: SELECT 1, expect: true}\n" +
		"      - {sql: SELECT 2, expect: 17}\n      - {sql: SELECT 3, expect: x}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(Options{ConfigFile: path, DataDir: dir, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	checks := a.Config().Targets["shop"].Checks
	if len(checks) != 3 || checks[0].Expect != "true" || checks[1].Expect != "17" || checks[2].Expect != "x" {
		t.Errorf("%+v", checks)
	}
	for _, key := range []string{"targets.shop.checks", "targets.shop.schedule"} {
		_, err := a.Setting(key)
		if wrong := snap.CodeOf(err) == snap.CodeUsage; wrong != strings.HasSuffix(key, "checks") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// If several agents run at the same time, the night's job runs once.
func TestNightlyJobOnce(t *testing.T) {
	t.Parallel()
	s, agent := nightShop(t)
	if _, err := agent.Turn(t.Context(), s.task(t)); err != nil {
		t.Fatal(err)
	}
	s.late.Store(int64(24 * time.Hour))
	task := s.task(t)
	var ran atomic.Int64
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			if yes, _ := agent.Turn(t.Context(), task); yes {
				ran.Add(1)
			}
		}()
	}
	for range 4 {
		<-done
	}
	if ran.Load() != 1 || len(s.stored(t)) != 1 {
		t.Errorf("%d turns did something, %d copies were pushed", ran.Load(), len(s.stored(t)))
	}
}

// On servers, the masked copy is also loaded and checked, and the scratch database is then dropped.
func TestNightlyJobOnServers(t *testing.T) {
	t.Parallel()
	for _, kind := range []snap.Engine{snap.Postgres, snap.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newCloneShop(t, kind, "mariadb")
			target, err := s.Target(shopTarget)
			if err != nil {
				t.Fatal(err)
			}
			target.Sanitize.SQL = s.sqlFile(t, "UPDATE customer SET email = 'masked'")
			target.Checks = []Check{{"SELECT count(*) = 2000 FROM customer", "true"},
				{"SELECT DISTINCT email FROM customer", "masked"}}
			s.retarget(t, target)
			if err := s.file.addProfile("b", StorageProfile{URL: "file://" + filepath.Join(s.dir, "b")}); err != nil {
				t.Fatal(err)
			}
			agent := nightly.Agent{Records: s.Runs(), Now: s.now, Report: func(nightly.Event) {}}
			run, err := agent.RunNow(t.Context(), s.task(t))
			if err != nil || run.State != nightly.Done || !s.stored(t)[run.Masked] {
				t.Fatalf("%+v, %v", run, err)
			}
			for _, c := range []struct{ sql, problem string }{
				{"SELECT id FROM customer", "several rows"}, {"SELECT 1, 2", "2 columns"}, {"SELECT NULL",
					`returned "NULL"`},
				{"DELETE FROM customer", "the SQL failed"}, {"SELECT 1 FROM customer WHERE id < 0", "no row"}} {
				target.Checks = []Check{{c.sql, ""}}
				s.retarget(t, target)
				s.late.Add(int64(time.Minute))
				run, err := agent.RunNow(t.Context(), s.task(t))
				if err != nil || run.State != nightly.Failed || !strings.Contains(run.Problem, c.problem) {
					t.Errorf("%s: %+v, %v", c.sql, run, err)
				}
			}
			if left := s.left(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Values of checks are compared as numbers, without rounding, and as true and false.
func TestSameValue(t *testing.T) {
	t.Parallel()
	if sameValue("1234567890123456789", "1234567890123456790") || !sameValue("0.10", "1e-1") ||
		!sameValue("1", "true") {
		t.Error("values are compared wrongly")
	}
}
