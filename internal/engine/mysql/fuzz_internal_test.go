package mysql

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"snap"
	"snap/internal/engine"
)

// FuzzURL checks that a connection URL is either refused, or accepted and
// equivalent to the URL that is written from it.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"mysql://me@localhost/shop", "mysql://me:p%40ss@h:5/d?tls=true",
		"mysql:///d?socket=/tmp/s", "mysql://[::1]:5/x", "mysql://h", "mysql://h/a/b", "", "%zz", "mysql://h:x/d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		d, err := parse(raw)
		if err != nil {
			if snap.CodeOf(err) != snap.CodeUsage {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		again, err := parse(d.url())
		if err != nil || again != d {
			t.Fatalf("%q is %+v, and its URL %q is %+v, %v", raw, d, d.url(), again, err)
		}
	})
}

// FuzzDumpLines checks that any line of a dump is either read or refused.
func FuzzDumpLines(f *testing.F) {
	for _, seed := range []string{"INSERT INTO `a` (`b`,`c`) VALUES\n", "INSERT INTO `a``b` (`c`) VALUES\n",
		"(1,'x\\'y',NULL)", "('", "()", "(_binary 'x')", "(1,'a''b')", "INSERT INTO `"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if table, columns, err := parseStart(line); err == nil && len(line) < len(table)+len(columns) {
			t.Fatalf("%q has the table %q and columns %q", line, table, columns)
		}
		fields, err := fieldsOf(line, nil)
		if err != nil {
			return
		}
		total := 0
		for _, field := range fields {
			total += len(field)
		}
		if total > len(line) {
			t.Fatalf("%q has the fields %q", line, fields)
		}
	})
}

// FuzzReadDump checks that any bytes after a valid start are read as rows with the columns of their
// table, or refused.
func FuzzReadDump(f *testing.F) {
	for _, seed := range []string{"INSERT INTO `t` (`a`,`b`) VALUES\n(1,NULL),\n('x',_binary 'y');\n", "",
		"INSERT INTO `t` () VALUES\n();\n", "INSERT INTO `other` (`a`) VALUES\n(1);\n", "(1);\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, rows []byte) {
		start := head + "{\"tables\":[{\"name\":\"t\",\"sql\":\"CREATE TABLE `t` (`a` int,`b` int)\"}]}\n"
		dump := append([]byte(start), rows...)
		r, err := Engine{}.ReadDump(t.Context(), engine.Dump{Trust: engine.Foreign,
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(dump)), nil },
			Info: engine.Info{Tables: []engine.Table{{Name: "t", Columns: []engine.Column{{Name: "a"}, {Name: "b"}}}}},
		}, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		err = r.Rows(t.Context(), func(table int, fields [][]byte) error {
			if table != 0 || len(fields) != 2 {
				t.Fatalf("a row of table %d has the fields %q", table, fields)
			}
			for _, field := range fields {
				if field != nil {
					r.Text(field)
				}
			}
			return nil
		})
		var refused *snap.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("%q fails with %v", rows, err)
		}
	})
}
