package mysql

import (
	"testing"

	"snap"
)

// FuzzURL: a connection URL is taken or refused, and its own URL means the
// same.
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

// FuzzDumpLines checks that a made-up dump is read or refused.
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
