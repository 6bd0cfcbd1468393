package mysql

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// planFor returns a plan that masks only the columns in masks, whose keys are table.column.
func planFor(tables []engine.Table, masks map[string]engine.Mask) engine.Plan {
	p := engine.Plan{Tables: map[[2]string]engine.TablePlan{}}
	for _, t := range tables {
		plan := engine.TablePlan{Columns: map[string]engine.Mask{}}
		for _, c := range withoutGenerated(t.Columns) {
			plan.Columns[c.Name] = masks[t.Name+"."+c.Name]
		}
		p.Tables[[2]string{"", t.Name}] = plan
	}
	return p
}

// If every column is kept, the dump is unchanged. With masks, only the masked columns change.
// Columns that the plan does not cover are refused.
func TestRewrite(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.MariaDB(t)
	script(t, from, odd)
	d, b := dumped(t, from)
	var same bytes.Buffer
	info, err := Engine{}.Rewrite(t.Context(), d, planFor(d.Info.Tables, nil), &same, engine.Options{})
	if err != nil || !bytes.Equal(same.Bytes(), b) {
		t.Fatalf("%v: %s", err, difference(string(b), same.String()))
	}
	counted(t, from, info.Tables)
	var out bytes.Buffer
	masks := map[string]engine.Mask{
		"a `b` ü.v": func(v string) (string, bool) { return "masked '" + strings.Repeat("\\", len(v)), false },
		"a `b` ü.b": func(string) (string, bool) { return "bin\x00", false },
		"a `b` ü.d": func(string) (string, bool) { return "", true },
	}
	if info, err = (Engine{}).Rewrite(t.Context(), d, planFor(d.Info.Tables, masks), &out,
		engine.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, dumpOf(out.Bytes(), info), false); err != nil {
		t.Fatal(err)
	}
	db, _ := openURL(t, to)
	var n int
	err = db.QueryRow("SELECT count(*) FROM `a ``b`` ü` WHERE v LIKE 'masked \\'%' AND d IS NULL AND (b IS NULL OR " +
		"hex(b) = '62696E00') AND id IN (1, 2, 3)").Scan(&n)
	db.Close()
	if err != nil || n != 3 || bytes.Contains(out.Bytes(), []byte("it\\'s")) {
		t.Errorf("%d masked rows, %v", n, err)
	}
	for column, text := range map[string]string{"parent.id": "99999999999", "parent.child": "none"} {
		out.Reset()
		info, err := Engine{}.Rewrite(t.Context(), d,
			planFor(d.Info.Tables, map[string]engine.Mask{column: func(string) (string, bool) { return text, false }}),
			&out,
			engine.Options{})
		if err == nil {
			err = load(t, to, dumpOf(out.Bytes(), info), false)
		}
		if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), "the table parent is not valid") {
			t.Errorf("%s as %q: %v", column, text, err)
		}
	}
	c, err := Engine{}.Inspect(t.Context(), d, 10, engine.Options{})
	if err != nil || len(c.Tables) != 4 || len(c.Tables[0].Samples[1]) != 3 ||
		c.Tables[0].Samples[1][0] != "it's (1),(2); INSERT INTO `x` VALUES (1)" {
		t.Errorf("%+v, %v", c, err)
	}
	missing := planFor(d.Info.Tables, nil)
	delete(missing.Tables[[2]string{"", "parent"}].Columns, "child")
	if _, err := (Engine{}).Rewrite(t.Context(), d, missing, &out,
		engine.Options{}); snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), "parent.child") {
		t.Errorf("an uncovered column: %v", err)
	}
}

// A literal is parsed as the value that was written.
func TestLiterals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		kind := rapid.SampledFrom([]int{kindText, kindBinary}).Draw(t, "kind")
		got, _, err := value(literalOf(nil, text, kind))
		if err != nil || got != text {
			t.Fatalf("%q became %q, %v", text, got, err)
		}
	})
}

// The value of a BIT column is masked as a decimal number.
func TestBits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ literal, value, masked, want string }{
		{"0x01", "1", "0", "0x00"}, {"0x0102", "258", "3", "0x0003"},
		{"0xffffffffffffffff", "18446744073709551615", "18446744073709551614", "0xfffffffffffffffe"},
	} {
		got, err := appendMasked(nil, []byte(c.literal), func(v string) (string, bool) {
			if v != c.value {
				t.Errorf("%s is the value %q", c.literal, v)
			}
			return c.masked, false
		}, nil)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.literal, got, err)
		}
	}
}
