package mysql

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// versioned creates system-versioned tables with a history: a table with a hidden period, a table
// with a named period, and a partitioned table.
const versioned = "CREATE TABLE hidden (id INT PRIMARY KEY, v VARCHAR(20), n INT WITHOUT SYSTEM VERSIONING, UNIQUE " +
	"KEY (v)) WITH SYSTEM VERSIONING;\n" +
	"INSERT INTO hidden VALUES (1, 'one', 1), (2, 'two', 2); UPDATE hidden SET v = 'three' WHERE id = 1; DELETE FROM " +
	"hidden WHERE id = 2; INSERT INTO hidden VALUES (2, 'again', 3);\n" +
	"CREATE TABLE named (id INT PRIMARY KEY, `since ``x` TIMESTAMP(6) GENERATED ALWAYS AS ROW START, v TEXT, `to` " +
	"TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (`since ``x`, `to`)) WITH SYSTEM " +
	"VERSIONING;\n" +
	"INSERT INTO named (id, v) VALUES (1, 'a'), (2, 'b'); UPDATE named SET v = 'c'; DELETE FROM named WHERE id = 1;\n" +
	"CREATE TABLE parted (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 1000 " +
	"(PARTITION p0 HISTORY, PARTITION pn CURRENT);\n" +
	"INSERT INTO parted VALUES (1, 1); UPDATE parted SET v = 2; UPDATE parted SET v = 3;\n"

// counting creates a table with transaction IDs, whose history no server can restore.
const counting = "CREATE TABLE counting (id INT PRIMARY KEY, v INT, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW " +
	"START, e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING;\n" +
	"INSERT INTO counting (id, v) VALUES (1, 1); UPDATE counting SET v = 2;\n"

// past returns every row that the versioned tables ever had, with its start time.
// It also returns the end times of old rows, but not those of current rows, because
// servers differ in the latest time that they support.
func past(t *testing.T, url string) []string {
	t.Helper()
	return slices.Concat(
		sorted(t, url,
			"SELECT concat_ws(' ', id, v, n, row_start, if(row_end > now(6), 'now', row_end)) FROM hidden FOR "+
				"SYSTEM_TIME ALL"),
		sorted(t, url,
			"SELECT concat_ws(' ', id, v, `since ``x`, if(`to` > now(6), 'now', `to`)) FROM named FOR SYSTEM_TIME ALL"),
		sorted(t, url,
			"SELECT concat_ws(' ', id, v, row_start, if(row_end > now(6), 'now', row_end)) FROM parted FOR "+
				"SYSTEM_TIME ALL"))
}

// TestHistoryNotTransactional checks the warning about system-versioned tables that are not
// transactional.
func TestHistoryNotTransactional(t *testing.T) {
	t.Parallel()
	url := servertest.MySQL(t, "mariadb")
	script(t, url, "CREATE TABLE aria (id INT) ENGINE = Aria WITH SYSTEM VERSIONING")
	info, err := Engine{}.Check(t.Context(), url)
	if said := strings.Join(info.Warnings, "\n"); err != nil ||
		!strings.Contains(said, "not transactional, so their rows can be newer than those of other tables: aria") {
		t.Errorf("%q, %v", said, err)
	}
}

// A dump includes the history of system-versioned tables. The history can be moved between servers
// whose latest times are in 2038 and in 2106.
func TestHistory(t *testing.T) {
	t.Parallel()
	for _, servers := range [][2]string{{"mariadb", "mariadb"}, {"mariadb", "mariadb-11.8"},
		{"mariadb-11.8", "mariadb-11.8"}} {
		t.Run(strings.Join(servers[:], " to "), func(t *testing.T) {
			t.Parallel()
			from, to := servertest.MySQL(t, servers[0]), servertest.MySQL(t, servers[1])
			script(t, from, versioned)
			d, _ := dumped(t, from)
			if len(d.Info.Warnings) > 0 {
				t.Errorf("warned of %q", d.Info.Warnings)
			}
			for range 2 {
				if err := load(t, to, d, false); err != nil {
					t.Fatal(err)
				}
				if a, b := past(t, from), past(t, to); len(a) != 11 || !slices.Equal(a, b) {
					t.Errorf("the history\n%s\nbecame\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
				}
			}
		})
	}
}

// If a history cannot be included, the build reports it. MySQL cannot load a dump with a history.
func TestHistoryThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.MariaDB(t)
	script(t, from, versioned+counting)
	warned := func(d engine.Dump) string { return strings.Join(d.Info.Warnings, "|") }
	d, _ := dumped(t, from)
	if got := warned(d); got != historyLost([]string{"counting"}) {
		t.Errorf("warned of %q", got)
	}
	if err := load(t, to, d, false); err != nil {
		t.Fatal(err)
	}
	if got := sorted(t, to, "SELECT concat(id, ' ', v) FROM counting FOR SYSTEM_TIME ALL"); !slices.Equal(got,
		[]string{"1 2"}) {
		t.Errorf("the rows of now: %q", got)
	}
	d, err := subsetOf(t, from, engine.Subset{Percent: 100})
	if err != nil || !strings.Contains(warned(d), historyLost([]string{"hidden", "named", "parted"})) {
		t.Errorf("a subset warned of %q, %v", warned(d), err)
	}
	mysql := servertest.MySQL(t, "mysql-8.0")
	d, _ = dumped(t, from)
	if err := load(t, mysql, d, false); snap.CodeOf(err) != snap.CodeInvalid ||
		!strings.Contains(err.Error(), "cannot load the history") {
		t.Errorf("MySQL: %v", err)
	}
}

// Masks also apply to old versions of rows, and only to their own columns. A plan need not cover
// the columns of a period.
func TestHistoryIsMasked(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.MariaDB(t)
	script(t, from, versioned)
	d, _ := dumped(t, from)
	c, err := Engine{}.Inspect(t.Context(), d, 10, engine.Options{})
	if err != nil || len(c.Tables[0].Samples[1]) != 4 { // of hidden.v, including old versions
		t.Errorf("%+v, %v", c, err)
	}
	var out bytes.Buffer
	mask := func(v string) (string, bool) { return "masked " + fmt.Sprint(len(v)), false }
	info, err := Engine{}.Rewrite(t.Context(), d, planFor(d.Info.Tables, map[string]engine.Mask{"named.v": mask}), &out,
		engine.Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, dumpOf(out.Bytes(), info), false); err != nil {
		t.Fatal(err)
	}
	want := past(t, from)
	for i, row := range want {
		if i >= 4 && i < 8 { // of named
			f := strings.Fields(row)
			f[1] = "masked 1"
			want[i] = strings.Join(f, " ")
		}
	}
	if got := past(t, to); !slices.Equal(got, want) {
		t.Errorf("%q\nand should be %q", got, want)
	}
}
