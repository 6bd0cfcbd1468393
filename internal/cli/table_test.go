package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"

	"snap"
)

// TestTableFits checks that no line is wider than --width, with any cells, and that nothing is cut
// without a width (SPEC 4.5).
func TestTableFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOfN(rapid.SampledFrom([]rune("ab 0東京éñ…👍\u0301\x1b")), 0, 40, -1)
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, 7, 7), 0, 8).Draw(t, "rows")
		width := rapid.IntRange(0, 140).Draw(t, "width")
		var out bytes.Buffer
		table := &table{out: &out, columns: cloudColumns(), width: width, gap: 2}
		for _, row := range rows {
			table.row(append([]string(nil), row...)...)
		}
		if err := table.flush(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != len(rows)+1 {
			t.Fatalf("%d lines for %d rows and a header", len(lines), len(rows))
		}
		for i, line := range lines {
			if got := runewidth.StringWidth(line); width > 0 && got > width {
				t.Fatalf("line %q is %d wide, more than %d", line, got, width)
			}
			for _, c := range rowOf(rows, i-1) {
				if width == 0 && !strings.Contains(line, snap.CleanText(c)) {
					t.Fatalf("line %q lacks the cell %q", line, c)
				}
			}
		}
	})
}

func rowOf(rows [][]string, i int) []string {
	if i < 0 {
		return nil
	}
	return rows[i]
}

// TestTableWideCharacters checks that columns are aligned in every script. A narrow terminal drops
// the name first. The target, the type, the sharing and the time of day stay.
func TestTableWideCharacters(t *testing.T) {
	t.Parallel()
	draw := func(width int) string {
		var out bytes.Buffer
		table := &table{out: &out, columns: cloudColumns(), width: width, gap: 2}
		table.row("snap_01234567", "東京", "東京-20261121T011600Z", "sanitized", "12 MB", "Yes", "2026-11-21 01:16")
		table.row("snap_89abcdef", "shop", "shop-20261121T011600Z", "snapshot", "1.2 GB", "No", "2026-11-21 01:16")
		if err := table.flush(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for width, want := range map[int]string{
		0: `ID             Target  Name                   Type         Size  Shared  Created
snap_01234567  東京    東京-20261121T011600Z  sanitized   12 MB  Yes     2026-11-21 01:16
snap_89abcdef  shop    shop-20261121T011600Z  snapshot   1.2 GB  No      2026-11-21 01:16
`,
		80: `ID             Target  Type         Size  Shared  Created
snap_01234567  東京    sanitized   12 MB  Yes     2026-11-21 01:16
snap_89abcdef  shop    snapshot   1.2 GB  No      2026-11-21 01:16
`,
		60: `ID             Target  Type       Shared  Created
snap_01234567  東京    sanitized  Yes     2026-11-21 01:16
snap_89abcdef  shop    snapshot   No      2026-11-21 01:16
`,
	} {
		if got := draw(width); got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}

// TestTableLeavesOut: a column that would show nothing is left out together with its space. It is
// left out from the rows of later pages too.
func TestTableLeavesOut(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: "Line  Action           By                From\n   1  snapshot.shared  login snapcli v1  10.0.0.1\n   2  " +
			"key.created      a browser         10.0.0.2\n",
		40: "Line  Action           By       From\n   1  snapshot.shared  login …  10.0.0.1\n   2  key.created      " +
			"a brow…  10.0.0.2\n",
		36: "Line  Action           From\n   1  snapshot.shared  10.0.0.1\n   2  key.created      10.0.0.2\n",
		16: "Line  Action\n   1  …ot.shared\n   2  …y.created\n",
	} {
		var out bytes.Buffer
		table := &table{out: &out, width: width, gap: 2, columns: []column{
			{title: "Line", right: true}, {title: "Action", least: 10, weight: 4, cut: keepEnd},
			{title: "By", least: 6, optional: true}, {title: "From", least: 8, weight: 1, optional: true},
		}}
		for _, row := range [][]string{{"1", "snapshot.shared", "login snapcli v1", "10.0.0.1"},
			{"2", "key.created", "a browser", "10.0.0.2"}} {
			table.row(row...)
			if err := table.flush(); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.String(); got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}

// TestTypesAreColored checks that a terminal shows at a glance which data is masked.
func TestTypesAreColored(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := &table{out: &out, columns: cloudColumns(), gap: 2, color: true}
	table.row("snap_1", "a", "a-1", "sanitized", "1 B", "No", "2026-11-21 01:16")
	table.row("snap_2", "a", "a-2", "snapshot", "1 B", "No", "2026-11-21 01:16")
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{green.Render("sanitized"), yellow.Render("snapshot")} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
}
