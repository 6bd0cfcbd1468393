// Package subsettest generates small databases with arbitrary graphs of foreign keys and computes,
// independently of package subset, the rows of a subset according to the rules. It is for the tests
// of the engines.
package subsettest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// Model is a generated database.
type Model struct {
	Tables []Table
}

// Table has a key of one or two columns, a value v, and references.
type Table struct {
	Name  string
	Parts int // number of key columns: k0, k1
	Refs  []Ref
	Rows  []Row
}

// Ref is a foreign key to a table, which may be the same table.
type Ref struct{ Parent int }

// Row is one row. Its key is derived from its position in the table.
type Row struct {
	V  int
	To []int // by reference: the parent's row; -1 is NULL
}

// Ask is the requested subset.
type Ask struct {
	Below   map[int]int // by table: rows with a lower v
	Percent float64
}

// Generate draws a random database and a subset of it.
func Generate(t *rapid.T) (Model, Ask) {
	var m Model
	n := rapid.IntRange(1, 6).Draw(t, "tables")
	for i := range n {
		table := Table{Name: fmt.Sprintf("t%d", i), Parts: rapid.IntRange(1, 2).Draw(t, "parts")}
		for range rapid.IntRange(0, 3).Draw(t, "refs") {
			table.Refs = append(table.Refs, Ref{rapid.IntRange(0, n-1).Draw(t, "parent")})
		}
		for range rapid.IntRange(0, 12).Draw(t, "rows") {
			table.Rows = append(table.Rows, Row{V: rapid.IntRange(0, 9).Draw(t, "v")})
		}
		m.Tables = append(m.Tables, table)
	}
	for i := range m.Tables {
		for r := range m.Tables[i].Rows {
			for _, ref := range m.Tables[i].Refs {
				to := rapid.IntRange(-1, len(m.Tables[ref.Parent].Rows)-1).Draw(t, "to")
				m.Tables[i].Rows[r].To = append(m.Tables[i].Rows[r].To, to)
			}
		}
	}
	a := Ask{Below: map[int]int{}}
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, 2, rapid.ID).Draw(t, "conditions") {
		a.Below[i] = rapid.IntRange(0, 10).Draw(t, "below")
	}
	if len(a.Below) == 0 || rapid.Bool().Draw(t, "percent too") {
		a.Percent = rapid.SampledFrom([]float64{1, 20, 50, 90, 100}).Draw(t, "percent")
	}
	return m, a
}

// Deep returns the statements that create a table named deep with the rows 1 to levels. Each row
// except the first references the previous one.
func Deep(levels int) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE deep (id int PRIMARY KEY, parent int, " +
		"FOREIGN KEY (parent) REFERENCES deep (id));\nINSERT INTO deep VALUES (1, NULL)")
	for i := 2; i <= levels; i++ {
		fmt.Fprintf(&b, ", (%d, %d)", i, i-1)
	}
	b.WriteString(";\n")
	return b.String()
}

// Where returns the conditions in the form that the program accepts.
func (a Ask) Where(m Model) map[string]string {
	where := map[string]string{}
	for i, below := range a.Below {
		where[m.Tables[i].Name] = fmt.Sprintf("v < %d", below)
	}
	return where
}

// key returns the key columns of a row: its position, and twice that.
func (t Table) key(row int) []string {
	return []string{strconv.Itoa(row), strconv.Itoa(2 * row)}[:t.Parts]
}

// Key returns a row's key as text, its parts separated by commas.
func (t Table) Key(row int) string { return strings.Join(t.key(row), ",") }

// KeyQuery returns the query for the keys of a table's rows.
func (t Table) KeyQuery() string {
	if t.Parts == 1 {
		return "SELECT CAST(k0 AS CHAR(20)) FROM " + t.Name
	}
	return "SELECT concat(CAST(k0 AS CHAR(20)), ',', CAST(k1 AS CHAR(20))) FROM " + t.Name
}

// SQL returns the statements that create the database: tables and rows, followed by the foreign
// keys, or with the foreign keys inside the tables if inline is set.
func (m Model) SQL(inline bool) string {
	var b strings.Builder
	var later []string
	for _, t := range m.Tables {
		columns := []string{"v int NOT NULL"}
		var key []string
		for p := range t.Parts {
			key = append(key, fmt.Sprintf("k%d", p))
			columns = append(columns, fmt.Sprintf("k%d int NOT NULL", p))
		}
		var constraints []string
		for i, ref := range t.Refs {
			var own []string
			for p := range m.Tables[ref.Parent].Parts {
				own = append(own, fmt.Sprintf("f%d_%d", i, p))
				columns = append(columns, fmt.Sprintf("f%d_%d int", i, p))
			}
			constraint := fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s (%s)", strings.Join(own, ", "),
				m.Tables[ref.Parent].Name,
				strings.Join([]string{"k0", "k1"}[:len(own)], ", "))
			constraints = append(constraints, constraint)
			later = append(later, fmt.Sprintf("ALTER TABLE %s ADD %s;\n", t.Name, constraint))
		}
		columns = append(columns, "PRIMARY KEY ("+strings.Join(key, ", ")+")")
		if inline {
			columns = append(columns, constraints...)
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s);\n", t.Name, strings.Join(columns, ", "))
		for r := range t.Rows {
			fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", t.Name, strings.Join(m.values(t, r), ", "))
		}
	}
	if !inline {
		b.WriteString(strings.Join(later, ""))
	}
	return b.String()
}

func (m Model) values(t Table, r int) []string {
	all := append([]string{strconv.Itoa(t.Rows[r].V)}, t.key(r)...)
	for i, ref := range t.Refs {
		parent := m.Tables[ref.Parent]
		if t.Rows[r].To[i] >= 0 {
			all = append(all, parent.key(t.Rows[r].To[i])...)
			continue
		}
		for range parent.Parts {
			all = append(all, "NULL")
		}
	}
	return all
}

// shared reports whether a percentage chooses a row.
func (t Table) shared(row int, percent float64) bool {
	return float64(t.hash(row)) < percent/100*(1<<32)
}

// hash returns the number that decides whether a row belongs to the share.
func (t Table) hash(row int) uint32 {
	sum := sha256.Sum256([]byte(strings.Join(t.key(row), "\x1f")))
	return binary.BigEndian.Uint32(sum[:4])
}
