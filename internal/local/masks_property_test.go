package local

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// Copies that are masked by suggested rules can always be loaded, for random schemas with keys,
// references, checks, enums and domains. Undecided columns are kept, or masked with the mask that
// the rules file suggests.
func TestFirstRulesLoad(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	for _, kind := range []string{"sqlite", "postgres", "mysql"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s %d", kind, seed), func(t *testing.T) {
				t.Parallel()
				s := newShop(t)
				target := Target{Name: "random", Source: "sqlite://" + filepath.Join(s.dir, "random.db"),
					Destination: "sqlite://" + filepath.Join(s.dir, "loaded.db")}
				driver := "sqlite"
				switch kind {
				case "postgres":
					target.Source, target.Destination = servertest.Postgres(t), servertest.Postgres(t)
					driver = "pgx"
				case "mysql":
					servertest.RequireServers(t, "MySQL")
					target.Source = servertest.MySQL(t, "mysql-8.0")
					target.Destination = servertest.MySQL(t, "mysql-8.0")
					driver = "mysql"
				}
				db, err := sql.Open(driver, dsnOf(driver, target.Source))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				text := randomSchema(rand.New(rand.NewPCG(seed, 19)), kind)
				for statement := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
					if _, err := db.Exec(strings.TrimSuffix(statement, ";")); err != nil {
						t.Fatalf("%v in\n%s", err, statement)
					}
				}
				if err := s.AddTarget(target); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Build(t.Context(), "random", BuildOptions{}, nil); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Load(t.Context(), "random", LoadOptions{}, nil); err != nil {
					t.Fatalf("the original does not load: %v", err)
				}
				clean := s.sanitizeAsDecided(t, "random", "keep")
				if _, err := s.Load(t.Context(), "random", LoadOptions{Snapshot: clean.Name}, nil); err != nil {
					rules, _ := s.firstRules(t, "random")
					t.Errorf("%v\n%s\n%s", err, text, rules)
				}
			})
		}
	}
}

// kindOfColumn is a type, with values and checks that its columns can have. X in a
// check represents the column.
type kindOfColumn struct {
	typ    string
	value  func(r *rand.Rand, row, salt int) string
	checks []string
}

// columnKinds are supported by all three kinds of database. Values differ from row to row, except
// those of char(1) and boolean.
var columnKinds = []kindOfColumn{
	{"integer", func(r *rand.Rand, row, _ int) string { return fmt.Sprint(row*7919 + r.IntN(7919)) },
		[]string{"X >= 0"}},
	{"bigint", func(_ *rand.Rand, row, _ int) string { return fmt.Sprint(4_000_000_000_000 + row*1_000_003) }, nil},
	{"smallint", func(_ *rand.Rand, row, _ int) string { return fmt.Sprint(row * 300) }, []string{"X < 32000"}},
	{"numeric(8,2)", func(r *rand.Rand, row, _ int) string {
		return fmt.Sprintf("%d.%02d", row*9+990_000/(row+1), r.IntN(99))
	},
		[]string{"X > -1"}},
	{"text", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'some words %d of row %d'", salt, row) },
		[]string{"X <> ''", "length(X) < 400", "X LIKE 'some%'"}},
	{"varchar(40)",
		func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'person.%d.%d@real.example'", salt, row) },
		[]string{"X LIKE '%@%'"}},
	{"varchar(9)", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'AB-%05d'", salt*100+row) },
		[]string{"length(X) = 8", "upper(X) = X"}},
	{"char(1)", func(r *rand.Rand, _, _ int) string { return []string{"'F'", "'M'"}[r.IntN(2)] },
		[]string{"X IN ('F', 'M')"}},
	{"date", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("'19%02d-05-%02d'", 40+row%50, 1+row%28) },
		nil},
	{"timestamp", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("'20%02d-01-02 03:04:05'", row%30) }, nil},
	{"boolean", func(r *rand.Rand, _, _ int) string { return []string{"true", "false"}[r.IntN(2)] }, nil},
	{"double precision", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("%d.5", row%89) },
		[]string{"X < 90"}},
}

// postgresKinds are supported by PostgreSQL only.
var postgresKinds = []kindOfColumn{
	{"uuid", func(_ *rand.Rand, row, salt int) string {
		return fmt.Sprintf("'00000000-0000-4000-%04d-%012d'", salt, row)
	}, nil},
	{"inet", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'198.51.%d.%d'", salt%256, row) }, nil},
	{"cidr", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'198.%d.%d.0/24'", salt%256, row) }, nil},
	{"citext", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'Person.%d.%d'", salt, row) },
		[]string{"X <> ''"}},
	{"macaddr",
		func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'00:1b:44:%02x:3a:%02x'", salt%256, row) }, nil},
	{"jsonb", func(_ *rand.Rand, row, salt int) string {
		return fmt.Sprintf(`'{"name":"Maria %d of %d","n":%d}'`, row, salt, row)
	}, nil},
	{"text[]",
		func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf(`'{"a, b %d of %d",NULL}'`, row, salt) }, nil},
	{"integer[]", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("'{%d,2}'", row) }, nil},
	{"point", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("'(%d.5,13.25)'", row) }, nil},
	{"bytea", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf(`'\x%08x%08x'`, salt, row) }, nil},
	{"mood", func(r *rand.Rand, _, _ int) string { return []string{"'good'", "'bad'"}[r.IntN(2)] }, nil},
	{"contact_hint",
		func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'reach.%d.%d@real.example'", row, salt) }, nil},
	{"pair", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'(%d,text of %d)'", row, salt) }, nil},
	{"money", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("'%d.50'", row) }, nil},
	{"xml", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'<a>text %d &amp; %d</a>'", row, salt) },
		nil},
	{"int4range", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("'[%d,%d)'", row, row+5) }, nil},
	{"bit(8)", func(r *rand.Rand, _, _ int) string { return fmt.Sprintf("B'%08b'", r.IntN(256)) }, nil},
	{"interval", func(_ *rand.Rand, row, _ int) string { return fmt.Sprintf("'%d days'", row) }, nil},
	{"tsvector", func(_ *rand.Rand, row, salt int) string { return fmt.Sprintf("'word%dof%d:1'", row, salt) }, nil},
}

var columnNames = strings.Fields(`email phone ssn first_name last_name full_name address city zip ` +
	`birth_date gender salary
	password api_token card_number iban ip_address latitude notes bio status code title price ` +
	`quantity passport user_name
	avatar company country religion location session_id tax_id comment mystery value data`)

// randomSchema returns SQL that creates ten tables with thirty rows each.
func randomSchema(r *rand.Rand, database string) string {
	kinds := columnKinds
	var b strings.Builder
	if database == "postgres" {
		kinds = append(append([]kindOfColumn{}, kinds...), postgresKinds...)
		b.WriteString("CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE TYPE pair AS (a int, b text);" +
			"CREATE EXTENSION citext; CREATE DOMAIN contact_hint AS varchar(60) CHECK (VALUE ~ '@');\n")
	}
	type target struct {
		table, column string
		salt          int
	}
	var unique []target // texts to refer to
	salt := 100
	for table := range 10 {
		name := []string{"users", "customers", "orders", "things"}[table%4] + fmt.Sprint(table)
		lines := []string{"id integer PRIMARY KEY"}
		columns, salts, references := []kindOfColumn{}, []int{}, ""
		for i := range 3 + r.IntN(6) {
			kind := kinds[r.IntN(len(kinds))]
			column := fmt.Sprintf("%s_%d", columnNames[r.IntN(len(columnNames))], i)
			line := column + " " + kind.typ
			if r.IntN(2) == 0 {
				line += " NOT NULL"
			}
			if n := len(kind.checks); n > 0 && r.IntN(3) == 0 {
				line += " CHECK (" + strings.ReplaceAll(kind.checks[r.IntN(n)], "X", column) + ")"
			}
			alike := kind.typ != "boolean" && kind.typ != "char(1)" && kind.typ != "mood" && kind.typ != "point" &&
				(kind.typ != "text" || database != "mysql") &&
				kind.typ != "xml" && kind.typ != "bit(8)" && kind.typ != "timestamp" && kind.typ != "numeric(8,2)"
			if alike && r.IntN(4) == 0 {
				line += " UNIQUE"
				if kind.typ == "varchar(40)" {
					unique = append(unique, target{name, column, salt})
				}
			}
			lines, columns, salts = append(lines, line), append(columns, kind), append(salts, salt)
			salt++
		}
		if len(unique) > 0 && unique[0].table != name && r.IntN(2) == 0 {
			to := unique[0]
			lines = append(lines, "ref_email varchar(40)")
			references = fmt.Sprintf(", FOREIGN KEY (ref_email) REFERENCES %s (%s)", to.table, to.column)
			columns, salts = append(columns, columnKinds[5]), append(salts, to.salt)
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s%s);\n", name, strings.Join(lines, ", "), references)
		if strings.Contains(lines[1], "varchar(40)") && database != "mysql" {
			fmt.Fprintf(&b, "CREATE UNIQUE INDEX ON_%d ON %s (lower(%s)) WHERE id > 0;\n", table, name,
				strings.Fields(lines[1])[0])
		}
		for row := range 30 {
			values := []string{fmt.Sprint(row + 1)}
			for i, kind := range columns {
				values = append(values, kind.value(r, row, salts[i]))
			}
			fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", name, strings.Join(values, ", "))
		}
	}
	return b.String()
}
