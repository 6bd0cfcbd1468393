package postgres

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
	"snap/internal/servertest"
)

// written is an encoding with strings that a database in this encoding can store: random strings,
// and some that are easily damaged. table is the name of a table and of one of its columns, and
// told is that name as the program shows it.
type written struct {
	encoding    string
	character   *rapid.Generator[string]
	odd         []string
	table, told string
}

// from draws a string that has one byte from each of the ranges.
func from(ranges ...[2]byte) *rapid.Generator[string] {
	return rapid.Custom(func(r *rapid.T) string {
		var b []byte
		for _, between := range ranges {
			b = append(b, rapid.ByteRange(between[0], between[1]).Draw(r, "byte"))
		}
		return string(b)
	})
}

func writtens() []written {
	ascii, high := from([2]byte{1, 0x7f}), [2]byte{0xa1, 0xfe}
	return []written{
		{"LATIN1", rapid.OneOf(ascii, from([2]byte{0x80, 0xff})), []string{"caf\xe9", "\x80\x9f\xa0"}, "Gr\xf6\xdfe",
			"Größe"},
		{"WIN1252", rapid.OneOf(ascii, from([2]byte{0x80, 0xff})), []string{"\x80uro", "\x81 is no character"},
			"Gr\xf6\xdfe", "Größe"},
		{"EUC_JP", rapid.OneOf(ascii, from(high, high), from([2]byte{0x8e, 0x8e}, [2]byte{0xa1, 0xdf}),
			from([2]byte{0x8f, 0x8f}, high, high)),
			[]string{"\xad\xfb and \xa2\xc1 are the same character", "\xa1\xc1\xa1\xdd", "\x8f\xa2\xc3"},
			"\xc5\xec\xb5\xfe",
			"東京"},
		{"EUC_TW", rapid.OneOf(ascii, from(high, high)), []string{"\xc4\xe3\xa7\xa1"}, "\xc4\xe3",
			`\xC4\xE3`}, // an encoding that this program cannot convert
		{"UTF8", rapid.Map(rapid.Rune().Filter(func(r rune) bool { return r > 0 && utf8.ValidRune(r) }),
			func(r rune) string { return string(r) }), []string{"café 東京 \uf7e9"}, "Größe", "Größe"},
		{"SQL_ASCII", from([2]byte{1, 0xff}), []string{"caf\xe9", "café", "\xf0\x9f", "\uf7e9"}, "caf\xe9 \xc3\xa9",
			`caf\xE9 é`},
	}
}

// rawly runs statements that are in the database's own encoding.
func rawly(t testing.TB, url string, statements ...string) {
	t.Helper()
	conn := connectTo(t, url)
	defer conn.Close(t.Context())
	for _, s := range append([]string{"SET client_encoding = SQL_ASCII"}, statements...) {
		if _, err := conn.PgConn().Exec(t.Context(), s).ReadAll(); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
	}
}

// create creates a table of strings and fills it. Escapes keep the statement ASCII, and the server
// checks their values.
func (w written) create(t testing.TB, url string, texts []string) {
	t.Helper()
	values := make([]string, len(texts))
	for i, text := range texts {
		literal := "E'"
		for _, b := range []byte(text) {
			literal += fmt.Sprintf(`\x%02x`, b)
		}
		values[i] = fmt.Sprintf("(%d, %[2]s', %[2]s')", i, literal)
	}
	rawly(t, url,
		fmt.Sprintf(`CREATE TABLE "%[1]s" (id int PRIMARY KEY, "%[1]s" text, kept text)`,
			w.table), fmt.Sprintf(`INSERT INTO "%s" VALUES %s`, w.table, strings.Join(values, ", ")))
}

// texts returns a column's strings by id, as they are stored.
func (w written) texts(t testing.TB, url, column string) map[string]string {
	t.Helper()
	conn := connectTo(t, url)
	defer conn.Close(t.Context())
	query := fmt.Sprintf(`SET client_encoding = SQL_ASCII; `+
		`SELECT id, encode(convert_to("%s", getdatabaseencoding()), 'hex') FROM "%s"`, column, w.table)
	results, err := conn.PgConn().Exec(t.Context(), query).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, row := range results[1].Rows {
		b, err := hex.DecodeString(string(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		all[string(row[0])] = string(b)
	}
	return all
}

// another returns the URL of a fresh database on the same server.
func another(t testing.TB, server, suffix, encoding string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + suffix
	rawly(t, server, "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING '"+encoding+"'")
	t.Cleanup(func() {
		conn := connectTo(t, server)
		if _, err := conn.Exec(t.Context(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil &&
			t.Context().Err() == nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

// A database in any encoding is restored byte for byte in its own encoding, even if it replaces a
// database in another encoding. Rules change only masked values, also in a subset.
func TestEveryEncoding(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	to := another(t, server, "_to", "UTF8")
	seed := rand.IntN(1 << 20)
	for _, w := range writtens() {
		t.Run(w.encoding, func(t *testing.T) {
			from := another(t, server, "_"+strings.ToLower(w.encoding), w.encoding)
			drawn := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(w.character, 0, 12),
				func(c []string) string { return strings.Join(c, "") }), 20, 20).Example(seed)
			w.create(t, from, append(w.odd, drawn...))
			want := w.texts(t, from, "kept")
			if len(want) != len(w.odd)+len(drawn) {
				t.Fatalf("seed %d: %d rows", seed, len(want))
			}
			d, _ := dumped(t, from)
			if err := load(t, to, d, true); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, column := range []string{"kept", w.table} {
				sameTexts(t, seed, w.texts(t, to, column), want)
			}
			info, err := Engine{}.Check(t.Context(), to)
			if err != nil || info.Properties["encoding"] != w.encoding || len(info.Tables) != 1 ||
				info.Tables[0].Name != w.told || info.Tables[0].Columns[1].Name != w.told {
				t.Fatalf("Check returned %+v, %v", info, err)
			}
			w.masked(t, seed, from, to, want)
		})
	}
}

func sameTexts(t *testing.T, seed int, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("seed %d: %d rows, want %d", seed, len(got), len(want))
	}
	for id := range want {
		if got[id] != want[id] {
			t.Errorf("seed %d: text %s is %q, want %q", seed, id, got[id], want[id])
		}
	}
}

// masked masks a subset with a letter that not every encoding has.
func (w written) masked(t *testing.T, seed int, from, to string, want map[string]string) {
	t.Helper()
	d, err := subsetOf(t, from, engine.Subset{Where: map[string]string{"public." + w.told: "id < 12"}})
	if err != nil {
		t.Fatal(err)
	}
	contents, err := Engine{}.Inspect(t.Context(), d, 100, engine.Options{})
	if err != nil || contents.Tables[0].Name != w.told || contents.Tables[0].Columns[1].Type != "text" {
		t.Fatalf("%+v, %v", contents, err)
	}
	for i, sample := range contents.Tables[0].Samples[2] {
		if stored := contents.Stored(sample); !utf8.ValidString(sample) || i < len(w.odd) && w.odd[i] != stored[0] &&
			w.encoding != "EUC_JP" {
			t.Errorf("seed %d: sample %d is %q, stored %q", seed, i, sample, stored)
		}
	}
	var got bytes.Buffer
	cyrillic := func(v string) (string, bool) { return "ж" + strconv.Itoa(len([]rune(v))), false }
	plan := plainPlan(d)
	plan.Tables[[2]string{"public", w.told}].Columns[w.told] = cyrillic
	info, err := Engine{}.Rewrite(t.Context(), d, plan, &got, engine.Options{Jobs: 1})
	letter := map[string]string{"EUC_JP": "\xa7\xd8", "UTF8": "ж", "SQL_ASCII": "ж"}[w.encoding]
	if letter == "" {
		if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), "public."+w.told+"."+w.told) ||
			!strings.Contains(err.Error(), w.encoding) {
			t.Errorf("a mask that cannot be written: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, dumpOf(got.Bytes(), info), true); err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for id := range 12 {
		kept[strconv.Itoa(id)] = want[strconv.Itoa(id)]
	}
	sameTexts(t, seed, w.texts(t, to, "kept"), kept)
	for id, text := range w.texts(t, to, w.table) {
		if !strings.HasPrefix(text, letter) {
			t.Errorf("seed %d: text %s is masked as %q", seed, id, text)
		}
	}
}

// A snapshot that an old version of snapcli converted to UTF-8 when it built it is converted back.
func TestSnapshotThatWasConverted(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	from := another(t, server, "_before", "LATIN1")
	w := writtens()[0]
	w.create(t, from, w.odd)
	want := w.texts(t, from, "kept")
	d, _ := dumped(t, from)
	place, err := parse(from)
	if err != nil {
		t.Fatal(err)
	}
	tool, err := Engine{}.tool("pg_dump", major(d.Info.ServerVersion))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	place.encoding = "UTF8"
	conn, snapshot := connectTo(t, from), ""
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
		t.Fatal(err)
	}
	if _, _, err := place.dump(t.Context(), tool, snapshot, &b); err != nil {
		t.Fatal(err)
	}
	if err := load(t, from, dumpOf(b.Bytes(), d.Info), true); err != nil {
		t.Fatal(err)
	}
	sameTexts(t, 0, w.texts(t, from, "kept"), want)
}

// Converting text without a server gives the same result as the server's conversion, except for
// four characters.
func TestCharsetsAreTheServers(t *testing.T) {
	t.Parallel()
	server := servertest.Postgres(t)
	execute(t, server,
		`CREATE FUNCTION read(b bytea, e text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RETURN convert_from(b, e); `+
			`EXCEPTION WHEN OTHERS THEN RETURN NULL; END $f$`)
	const bytes = `SELECT e, b, read(b, e) FROM unnest($1::text[]) e,
		(SELECT decode(to_hex(n), 'hex') b FROM generate_series(160, 255) n) x
		UNION ALL SELECT e, b, read(b, e) FROM unnest($2::text[]) e,
			(SELECT decode(to_hex(n * 256 + m), 'hex') b FROM generate_series(161, 254) n,
			generate_series(161, 254) m) x`
	single := []string{"LATIN1", "LATIN2", "LATIN3", "LATIN4", "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9",
		"LATIN10", "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8",
		"WIN1250", "WIN1251", "WIN1252", "WIN1253", "WIN1254", "WIN1255", "WIN1256", "WIN1257", "WIN1258", "WIN866",
		"WIN874", "KOI8R", "KOI8U"}
	rows, err := connectTo(t, server).Query(t.Context(), bytes, pgx.QueryExecModeExec, single,
		[]string{"EUC_JP", "EUC_KR", "EUC_CN"})
	if err != nil {
		t.Fatal(err)
	}
	differ, read := []string{}, map[string]int{}
	var encoding string
	var stored []byte
	var text *string
	_, err = pgx.ForEachRow(rows, []any{&encoding, &stored, &text}, func() error {
		c := charsetOf(encoding)
		got := c.Text(string(stored))
		if back, err := c.Bytes(got); err != nil || c.Text(back) != got {
			t.Errorf("%s: %x is read as %q and written as %x, %v", encoding, stored, got, back, err)
		}
		if r, _ := utf8.DecodeRuneInString(got); text != nil && !charset.IsByte(r) {
			read[encoding]++
			if got != *text {
				differ = append(differ, fmt.Sprintf("%s %x", encoding, stored))
			}
		}
		return nil
	})
	if want := []string{"EUC_CN a1a4", "EUC_CN a1aa", "KOI8U ae", "KOI8U be"}; err != nil ||
		!slices.Equal(slices.Sorted(slices.Values(differ)), want) {
		t.Errorf("%v: other characters for %q", err, differ)
	}
	for _, e := range append(single, "EUC_JP", "EUC_KR", "EUC_CN") {
		if !convertible(e) || read[e] < 40 {
			t.Errorf("%s: %d characters", e, read[e])
		}
	}
}
