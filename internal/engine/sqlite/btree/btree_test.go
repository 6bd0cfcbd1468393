package btree

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	_ "modernc.org/sqlite"
)

// file creates a database with a script and returns its bytes.
func file(t testing.TB, script string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const script = `PRAGMA page_size = 512;
CREATE TABLE t (id INTEGER PRIMARY KEY, v);
INSERT INTO t VALUES (-9223372036854775808, 'ünï 漢 😀'), (-1, NULL), (0, 0), (1, 1), (2, -1), (3, 32767), (4, -8388608),
	(5, 2147483647), (6, 140737488355327),
	(7, 9223372036854775807), (8, 0.5), (9, ''), (10, x'41'), (11, x'00ff'), (12, zeroblob(5000)), (13, 9e999),
		(9223372036854775807, 'end');
CREATE TABLE k (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO k
	SELECT 'key ' || i, hex(zeroblob(i)) FROM n;`

// all reads every table of a file, and stops at the first error.
func all(data []byte, row func(table string, rowid int64, values []any)) error {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	entries, err := f.Schema()
	if err != nil {
		return err
	}
	for _, e := range entries {
		read := func(rowid int64, payload []byte) error {
			values, err := f.Values(nil, payload, 10)
			if err == nil {
				row(e.Name, rowid, values)
			}
			return err
		}
		if e.Type == "table" && e.Name == "k" {
			err = f.Keys(e.Root, func(payload []byte) error { return read(0, payload) })
		} else if e.Type == "table" {
			err = f.Rows(e.Root, read)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Every row of every encoding is read as SQLite reads it.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"UTF-8", "UTF-16le", "UTF-16be"} {
		data := file(t, "PRAGMA encoding = '"+encoding+"'; "+script)
		got := map[int64]any{}
		var keys [][]any
		err := all(data, func(table string, rowid int64, values []any) {
			if b, ok := values[1].([]byte); ok {
				values[1] = bytes.Clone(b)
			}
			if table == "t" {
				got[rowid] = values[1]
			} else {
				keys = append(keys, values)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		want := rows(t, data, "SELECT id, v FROM t")
		if len(want) != 17 || len(got) != len(want) {
			t.Fatalf("%s: %d rows, want %d", encoding, len(got), len(want))
		}
		for _, row := range want {
			if v := got[row[0].(int64)]; !reflect.DeepEqual(v, row[1]) {
				t.Errorf("%s: row %d is %#v, want %#v", encoding, row[0], v, row[1])
			}
		}
		if want := rows(t, data, "SELECT k, v FROM k ORDER BY k"); !reflect.DeepEqual(keys, want) {
			t.Errorf("%s: %d keys differ from %d", encoding, len(keys), len(want))
		}
	}
}

func rows(t *testing.T, data []byte, query string) (all [][]any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for list.Next() {
		row := make([]any, 2)
		if err := list.Scan(&row[0], &row[1]); err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

// Headers, pointers and sizes that SQLite would not write are refused.
func TestDamage(t *testing.T) {
	t.Parallel()
	sound := file(t, script)
	page := func(b []byte, kind byte) []byte {
		for at := 512; at < len(b); at += 512 {
			if b[at] == kind {
				return b[at : at+512]
			}
		}
		t.Fatalf("no page of kind %d", kind)
		return nil
	}
	for name, change := range map[string]func(b []byte) []byte{
		"nothing":     func([]byte) []byte { return nil },
		"no header":   func(b []byte) []byte { return b[:50] },
		"other magic": func(b []byte) []byte { b[0]++; return b },
		"page size":   func(b []byte) []byte { binary.BigEndian.PutUint16(b[16:], 100); return b },
		"reserved":    func(b []byte) []byte { b[20] = 200; return b },
		"encoding":    func(b []byte) []byte { b[59] = 9; return b },
		"cut off":     func(b []byte) []byte { return b[:512*3] },
		"a cycle":     func(b []byte) []byte { p := page(b, interiorKeys); copy(p[8:], []byte{0, 0, 0, 1}); return b },
		"two uses": func(b []byte) []byte {
			p := page(b, interiorKeys)
			copy(p[8:12], p[binary.BigEndian.Uint16(p[12:]):])
			return b
		},
		"no page": func(b []byte) []byte {
			p := page(b, interiorKeys)
			copy(p[8:],
				[]byte{0, 0, 0, 0})
			return b
		},
		"wrong kind":     func(b []byte) []byte { page(b, leafRows)[0] = leafKeys; return b },
		"unknown kind":   func(b []byte) []byte { page(b, leafRows)[0] = 7; return b },
		"too many cells": func(b []byte) []byte { binary.BigEndian.PutUint16(page(b, leafRows)[3:], 60000); return b },
		"cell too far":   func(b []byte) []byte { binary.BigEndian.PutUint16(page(b, leafRows)[8:], 600); return b },
		"cell too near":  func(b []byte) []byte { binary.BigEndian.PutUint16(page(b, leafRows)[8:], 2); return b },
		"order":          func(b []byte) []byte { p := page(b, leafRows); copy(p[8:10], p[10:12]); return b },
	} {
		err := all(change(bytes.Clone(sound)), func(string, int64, []any) {})
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A row that claims to have 16 MiB does not use that much memory, and one that claims more is
// refused. The test is not parallel, because it measures the memory of the whole process.
func TestHugeRow(t *testing.T) {
	data := file(t, "PRAGMA page_size = 512; CREATE TABLE t (v); INSERT INTO t VALUES (zeroblob(2000000))")
	leaf := data[512:1024]
	cell := leaf[binary.BigEndian.Uint16(leaf[8:]):]
	copy(cell, []byte{0x87, 0xff, 0xff, 0x7f}) // 16 MiB minus 1
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := all(data, func(string, int64, []any) {})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrDamaged) || after.TotalAlloc-before.TotalAlloc > 16<<20 {
		t.Errorf("%v, after %d bytes", err, after.TotalAlloc-before.TotalAlloc)
	}
	copy(cell, []byte{0x8f, 0xff, 0xff, 0x7f})
	if err := all(data, func(string, int64, []any) {}); !errors.Is(err, ErrRow) {
		t.Errorf("a row of 32 MiB: %v", err)
	}
}

// FuzzFile reads altered files: no panic, no endless work.
func FuzzFile(f *testing.F) {
	sound := file(f, script)
	f.Add(uint32(16), []byte{0xff})
	f.Add(uint32(512), []byte{5, 0, 0, 0, 9})
	f.Add(uint32(1032), []byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		data := bytes.Clone(sound)
		copy(data[int(at)%len(data):], with)
		rows := 0
		if err := all(data, func(string, int64, []any) { rows++ }); err == nil && rows > len(data) {
			t.Errorf("%d rows in %d bytes", rows, len(data))
		}
		_ = all(with, func(string, int64, []any) {})
	})
}
