package personal

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// labeled is one column of testdata/columns.tsv: the names and the type of a column of a public
// project, and its label. A person chose the label after reading the names, the types and, where
// necessary, the project's description:
//
//	direct    names a person, reaches a person, opens an account, or is a secret
//	personal  says something about a person, or can
//	none      neither
type labeled struct{ project, table, column, typ, label string }

func corpus(t testing.TB) []labeled {
	t.Helper()
	f, err := os.Open("testdata/columns.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []labeled
	projects := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		p := strings.Split(s.Text(), "\t")
		if len(p) < 5 || p[4] != "direct" && p[4] != "personal" && p[4] != "none" {
			t.Fatalf("a line of the corpus: %q", s.Text())
		}
		all = append(all, labeled{p[0], p[1], p[2], p[3], p[4]})
		projects[p[0]] = true
	}
	if len(all) < 2000 || len(projects) < 40 {
		t.Fatalf("%d columns of %d projects", len(all), len(projects))
	}
	return all
}

// heldOut reports whether a project was not looked at while the word lists were tuned. These are
// the projects whose names have a checksum divisible by three.
func heldOut(project string) bool { return crc32.ChecksumIEEE([]byte(project))%3 == 0 }

// figures is the result of a measurement.
type figures struct {
	columns, personal, found, masks, right, undecided int
	lost                                              []string // direct identifiers that were kept
	missed                                            []string // all personal columns that were kept
	kept                                              map[string]bool
}

func (f figures) String() string {
	return fmt.Sprintf("%d columns, %d personal: recall %.3f, precision of %d masks %.3f, undecided %.3f", f.columns,
		f.personal, f.recall(), f.masks, f.precision(), f.asked())
}

func (f figures) recall() float64    { return float64(f.found) / float64(f.personal) }
func (f figures) precision() float64 { return float64(f.right) / float64(f.masks) }
func (f figures) asked() float64     { return float64(f.undecided) / float64(f.columns) }

// measure judges the tables of the chosen projects with the given number of rows.
func measure(all []labeled, rows int, chosen func(string) bool) figures {
	f := figures{kept: map[string]bool{}}
	tables := map[string][]labeled{}
	for _, l := range all {
		if chosen(l.project) {
			tables[l.project+" "+l.table] = append(tables[l.project+" "+l.table], l)
		}
	}
	for _, columns := range tables {
		table := Table{Name: columns[0].table}
		for _, l := range columns {
			table.Columns = append(table.Columns, Column{Name: l.column, Type: ParseType(l.typ),
				Samples: valuesOf(l, rows)})
		}
		for i, finding := range Judge(table, testLists) {
			f.note(columns[i], finding)
		}
	}
	return f
}

func (f *figures) note(l labeled, finding Finding) {
	f.columns++
	personal := l.label != "none"
	if personal {
		f.personal++
	}
	switch finding.Verdict {
	case Keep:
		f.kept[strings.Join([]string{l.project, l.table, l.column}, " ")] = true
		if l.label != "none" {
			f.missed = append(f.missed, l.table+"."+l.column+" "+l.typ)
		}
		if l.label == "direct" {
			f.lost = append(f.lost, l.table+"."+l.column)
		}
		return
	case Mask:
		f.masks++
		if personal {
			f.right++
		}
	case Undecided:
		f.undecided++
	}
	if personal {
		f.found++
	}
}

// The columns of fifty public schemas are judged well enough from names and types alone, and also
// with 12 and with 600 rows. A third of the projects was held out while the words were tuned, and
// both parts must meet the same bounds. The same person labeled both parts and wrote the first
// words. The held-out part therefore only shows that the words were not fitted to single columns.
//
// One finding in the held-out part led to a change. A text key of a session was
// kept because its values were hexadecimal digits.
//
// Measured without rows, for the held-out part and the other one: recall 1.000 and
// 0.992, precision of masks 0.867 and 0.937, undecided 0.112 and 0.143.
func TestCorpus(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	all := corpus(t)
	for part, chosen := range map[string]func(string) bool{
		"held out": heldOut,
		"tuned":    func(project string) bool { return !heldOut(project) },
	} {
		few := map[string]bool{}
		for _, rows := range []int{0, 12, 600} {
			f := measure(all, rows, chosen)
			t.Logf("%s, %d rows: %s", part, rows, f)
			if f.recall() < 0.98 || f.precision() < 0.85 || f.asked() > 0.15 || len(f.lost) > 0 {
				t.Errorf("%s, %d rows: %s; kept direct identifiers: %v; kept: %v", part, rows, f,
					f.lost, f.missed)
			}
			if rows == 12 {
				few = f.kept
			}
			for column := range few {
				if rows == 600 && !f.kept[column] {
					t.Errorf("%s: %s is kept with 12 rows and not with 600", part, column)
				}
			}
		}
	}
}

var testLists = Lists{
	Given:  map[string]bool{"maria": true, "thomas": true, "aisha": true, "jan": true, "sofia": true},
	Family: map[string]bool{"meyer": true, "garcia": true, "kowalski": true, "smith": true, "rossi": true},
	Cities: map[string]bool{"berlin": true, "lyon": true, "porto": true},
}

// valuesOf returns values of a column that suit its label and type. It does not
// depend on the way columns are judged.
func valuesOf(l labeled, rows int) []string {
	r := rand.New(rand.NewPCG(uint64(crc32.ChecksumIEEE([]byte(l.project+l.table+l.column))), 7))
	var values []string
	seen := map[string]bool{}
	for range rows {
		v := valueOf(l, r)
		if !seen[v] && len(values) < 200 {
			values = append(values, v)
		}
		seen[v] = true
	}
	return values
}

func valueOf(l labeled, r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	lower, typ := strings.ToLower(l.column), strings.ToLower(l.typ)
	has := func(in string, parts ...string) bool {
		for _, a := range parts {
			if strings.Contains(in, a) {
				return true
			}
		}
		return false
	}
	person := pick("Maria", "Thomas", "Aisha", "Jan", "Sofia") + " " +
		pick("Meyer", "Garcia", "Kowalski", "Smith", "Rossi")
	switch {
	case has(typ, "uuid"):
		return fmt.Sprintf("%08x-0000-4000-8000-%012x", r.Uint32(), r.Uint64N(1<<48))
	case has(typ, "json"):
		if l.label == "none" {
			return fmt.Sprintf(`{"kind":"%s","count":%d}`, pick("a", "b"), r.IntN(50))
		}
		return fmt.Sprintf(`{"id":%d,"name":%q}`, r.IntN(1000), person)
	case has(typ, "timestamp", "date"):
		return fmt.Sprintf("20%02d-%02d-%02d 10:00:00", r.IntN(25), 1+r.IntN(12), 1+r.IntN(28))
	case has(typ, "bool", "tinyint(1)"):
		return pick("t", "f")
	case has(typ, "char", "text", "string"):
		return textOf(l, lower, person, has, pick, r)
	case has(typ, "inet"):
		return fmt.Sprintf("10.%d.%d.%d", r.IntN(256), r.IntN(256), r.IntN(256))
	case has(typ, "enum"):
		return pick("open", "closed")
	}
	return fmt.Sprint(r.IntN(100_000))
}

func textOf(l labeled, lower, person string, has func(string, ...string) bool, pick func(...string) string,
	r *rand.Rand) string {
	switch {
	case l.label == "none" && has(lower, "url", "path"):
		return fmt.Sprintf("https://example.org/%d", r.IntN(10_000))
	case l.label == "none" && has(lower, "uuid", "guid"):
		return fmt.Sprintf("%08x-0000-4000-8000-%012x", r.Uint32(), r.Uint64N(1<<48))
	case l.label == "none" && has(lower, "description", "text", "content", "title", "message"):
		return pick("Green tea", "A table for four", "Winter sale") + " " + pick("in a box", "of oak", "with a lid")
	case l.label == "none":
		return pick("basic", "extra", "open", "closed", "red", "K-12", "north") + pick("", "", "-2")
	case has(lower, "mail"):
		return strings.ToLower(strings.ReplaceAll(person, " ", ".")) + fmt.Sprintf("%d@example.org", r.IntN(1000))
	case has(lower, "phone", "tel", "fax", "mobil", "gsm"):
		return fmt.Sprintf("+49 30 %07d", r.IntN(10_000_000))
	case has(lower, "ip"):
		return fmt.Sprintf("192.168.%d.%d", r.IntN(256), r.IntN(256))
	case has(lower, "token", "secret", "password", "key", "digest", "id"):
		return fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
	case has(lower, "name", "login", "nom"):
		return person
	case has(lower, "address", "street", "line"):
		return fmt.Sprintf("%d Oak Street", 1+r.IntN(99))
	}
	return pick("Thanks for the call on", "We met again on", "Please send it back on") + " " +
		pick("Monday", "Friday") +
		fmt.Sprintf(", order %d", r.IntN(1000))
}

// Judging a thousand columns with 200 values each must take at most five seconds.
// It took 1.3 seconds on two cores of a busy machine.
func BenchmarkJudge(b *testing.B) {
	all := corpus(b)[:1000]
	for b.Loop() {
		measure(all, 600, func(string) bool { return true })
	}
}
