package mysql

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// oddTexts returns strings by character set, in hexadecimal digits. Some of them can be converted
// to UTF-8 but not back.
func oddTexts() map[string][]string {
	all := map[string][]string{
		"sjis": {"5C", "8140", "F040", "955C955C", "B1B2", "7E"}, "cp932": {"ED40", "FA5C", "F040", "5C"},
		"ujis": {"A9A1", "B4C1", "8FB0A1"}, "eucjpms": {"ADA1", "A9A1"},
		"gbk": {"A140", "D2BB", "815C"}, "big5": {"C840", "A55C"}, "gb2312": {"A2A1", "B0A1"},
		"euckr": {"C941", "B0A1"},
		"greek": {"A4", "E1"}, "hebrew": {"A1", "E0"}, "cp1250": {"81", "E9"}, "cp1251": {"98", "E6"}, "cp1256": {"8A"},
		"cp1257": {"81"}, "tis620": {"DB"},
		"swe7": {"5B5D", "7F"}, "hp8": {"FF"}, "dec8": {"A4"}, "armscii8": {"A4"}, "geostd8": {"81"},
		"latin1": {"818D8F909D", "E9", "80"}, "latin2": {"A3"}, "utf8mb3": {"C3A9"}, "utf8mb4": {"F09F9880"},
		"utf16": {"D83DDE00"}, "ucs2": {"00E9"}, "utf32": {"0001F600"}, "binary": {"00FFC3"},
	}
	ascii := ""
	for c := ' '; c <= '~'; c++ {
		ascii += fmt.Sprintf("%02X", c)
	}
	for name, texts := range all {
		if name != "utf16" && name != "utf32" && name != "ucs2" {
			all[name] = append(texts, ascii, strings.Replace(ascii, "5C", "", 1))
		}
	}
	return all
}

// oddTable creates a table with two columns of every character set, and a table whose key is a
// string in such a character set.
func oddTable() string {
	var columns, values []string
	rows := 0
	for name, texts := range oddTexts() {
		columns = append(columns,
			fmt.Sprintf("v_%[1]s VARCHAR(100) CHARACTER SET %[1]s, kept_%[1]s VARCHAR(100) CHARACTER SET %[1]s", name))
		rows = max(rows, len(texts))
	}
	text := "CREATE TABLE t (id INT PRIMARY KEY, " + strings.Join(columns, ", ") +
		");\nCREATE TABLE k (v VARCHAR(100) CHARACTER SET sjis PRIMARY KEY);\n"
	for row := range rows {
		columns, values = []string{"id"}, []string{fmt.Sprint(row)}
		for name, texts := range oddTexts() {
			if row < len(texts) {
				columns, values = append(columns, "v_"+name, "kept_"+name),
					append(values, strings.Split(fmt.Sprintf("_%[1]s X'%[2]s',_%[1]s X'%[2]s'", name, texts[row]),
						",")...)
			}
		}
		text += fmt.Sprintf("INSERT INTO t (%s) VALUES (%s);\n", strings.Join(columns, ", "),
			strings.Join(values, ", "))
		text += fmt.Sprintf("INSERT INTO k VALUES (_sjis X'%s');\n", oddTexts()["sjis"][row])
	}
	return text
}

// Columns of every character set are restored byte for byte, also from a subset. Rules change only
// masked values.
func TestEveryCharacterSet(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, oddTable())
		d, _ := dumped(t, from)
		if err := load(t, to, d, true); err != nil {
			t.Fatal(err)
		}
		sameBytes(t, to, "v", 99)
		sameBytes(t, to, "kept", 99)

		var b, out bytes.Buffer
		info, err := Engine{}.Dump(t.Context(), from, &b,
			engine.Options{Jobs: 1, TempDir: t.TempDir(),
				Subset: &engine.Subset{Where: map[string]string{"t": "id < 2", "k": "hex(v) IN ('5C', '8140')"}}})
		if err != nil {
			t.Fatal(err)
		}
		masks := map[string]engine.Mask{}
		for name := range oddTexts() {
			masks["t.v_"+name] = func(v string) (string, bool) { return "m" + fmt.Sprint(len([]rune(v))), false }
		}
		masks["t.v_sjis"] = func(v string) (string, bool) { return "ж" + hex.EncodeToString([]byte(v)), false }
		if info, err = (Engine{}).Rewrite(t.Context(), dumpOf(b.Bytes(), info), planFor(info.Tables, masks), &out,
			engine.Options{Jobs: 2}); err != nil {
			t.Fatal(err)
		}
		if err := load(t, to, dumpOf(out.Bytes(), info), true); err != nil {
			t.Fatal(err)
		}
		sameBytes(t, to, "kept", 2)
		db, _ := openURL(t, to)
		var masked, keys string
		err = db.QueryRow("SELECT (SELECT group_concat(hex(v_sjis) ORDER BY id) FROM t), (SELECT group_concat(hex(v) "+
			"ORDER BY hex(v)) FROM k)").Scan(&masked, &keys)
		if err != nil || masked != "84773563,8477653338303830" || keys != "5C,8140" {
			t.Errorf("masked as %s, chosen are %s, %v", masked, keys, err)
		}

		masks = map[string]engine.Mask{"t.v_latin1": func(string) (string, bool) { return "ж", false }}
		out.Reset()
		if info, err = (Engine{}).Rewrite(t.Context(), d, planFor(d.Info.Tables, masks), &out,
			engine.Options{Jobs: 2}); err != nil {
			t.Fatal(err)
		}
		if err := load(t, to, dumpOf(out.Bytes(), info), true); snap.CodeOf(err) != snap.CodeInvalid ||
			!strings.Contains(err.Error(), "the table t ") || !strings.Contains(err.Error(), "v_latin1") {
			t.Errorf("a mask that latin1 cannot hold: %v", err)
		}
		sameBytes(t, to, "kept", 2)
	})
}

// sameBytes checks that the columns of every character set have the first values of oddTexts. The
// parameter most limits the number of rows.
func sameBytes(t *testing.T, url, column string, most int) {
	t.Helper()
	db, _ := openURL(t, url)
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, want := range oddTexts() {
		want = want[:min(most, len(want))]
		if got := answer(t, c, fmt.Sprintf("SELECT hex(%[1]s_%[2]s) FROM t WHERE %[1]s_%[2]s IS NOT NULL ORDER BY id",
			column, name)); !slices.Equal(got, want) {
			t.Errorf("%s_%s is %q, want %q", column, name, got, want)
		}
	}
}

// The search for originals also finds values that a dump stores as hexadecimal digits.
func TestStoredIn(t *testing.T) {
	t.Parallel()
	forms := storedIn(map[string]bool{"sjis": true, "greek": true})("表示文字列")
	if want := []string{"表示文字列", "955c8ea695b68e9a97f1"}; !slices.Equal(forms, want) {
		t.Errorf("%q", forms)
	}
	if literal := string(appendBytesIn(nil, []byte("\x95\x5c\x8e\xa6\x95\xb6\x8e\x9a\x97\xf1"),
		"sjis")); literal != "_sjis X'955c8ea695b68e9a97f1'" {
		t.Error(literal)
	}
	for _, literal := range []string{"_", "_sjis", "_sjis X'5'", "_sjis X'5c", "_sjis 5c'"} {
		if _, _, err := value([]byte(literal)); err == nil {
			t.Errorf("%s is read", literal)
		}
	}
}
