package sanitize

import (
	"testing"

	"snap/internal/engine"
	"snap/internal/schema"
)

// The condition of a rule is certain only if every database would give the same answer. A row for
// which it is not certain gets the mask, and never the one of else.
func TestConditionsThatAreNotCertain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when, value string
		want        answer
	}{
		{"a = 'customer'", "customer", yes},
		{"a = 'customer'", "supplier", no},
		{"a = 'customer'", "customer  ", unsure}, // char(10)
		{"a = 'customer'", "Customer", unsure},   // a collation that ignores case, or citext
		{"a = 'Müller'", "Mu\u0308ller", unsure},
		{"a = 'strasse'", "Stra\u00dfe", unsure},
		{"a <> 'customer'", "CUSTOMER", unsure},
		{"a <> 'customer'", "supplier", yes},
		{"a IN ('x', 'customer')", "customer ", unsure},
		{"a NOT IN ('x', 'customer')", "CUSTOMER", unsure},
		{"a NOT IN ('x', 'customer')", "y", yes},
		{"a NOT IN ('x', NULL)", "y", unsure},
		{"a IN (1, 2)", "1.00", yes}, // numeric(5,2)
		{"a IN (1, 2)", "3.00", no},
		{"a <> 1", "1.0", no},
		{"a = '1'", "1.0", unsure}, // a text or a number
		{"a <> '1'", "1.0", unsure},
		{"a = 9007199254740993", "9007199254740992", unsure},
		{"a = true", "t", yes},
		{"a IN (true)", "t", yes},
		{"a IN (true)", "f", no},
		{"a = 'true'", "t", unsure},
		{"a > 9", "10", yes},
		{"a > '9'", "10", unsure}, // as texts, it is not
		{"a > '09'", "10", yes},
		{"a LIKE 'cust%'", "customer", yes},
		{"a LIKE 'cust%'", "Customer", unsure},
		{"a LIKE 'customer'", "customer  ", unsure},
		{"a NOT LIKE 'cust%'", "Customer", unsure},
		{"a NOT LIKE 'cust%'", "supplier", yes},
		{"char_length(a) = 8", "customer  ", unsure},
		{"NOT (a = 'customer')", "Customer", unsure},
		{"a = 'customer' OR a = 'x'", "Customer", unsure},
	} {
		e, err := schema.ParseExpr(schema.PostgreSQL, c.when)
		if err != nil {
			t.Fatalf("%s: %v", c.when, err)
		}
		got := condition{of: func(string) (string, bool) { return c.value, true }}.answer(e)
		if got != c.want {
			t.Errorf("%s of %q is %d, want %d", c.when, c.value, got, c.want)
		}
	}
}

// A table's own rule takes precedence over a pattern that drops its rows.
func TestOwnRuleBeforePattern(t *testing.T) {
	t.Parallel()
	rules, err := parseRules("r.yaml",
		[]byte("tables: {'public.audit_*': {rows: drop}, public.audit_settings: {columns: {a: redact}}}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"audit_log": true, "audit_settings": false, "orders": false} {
		if got := rules.drops(engine.Shape{Schema: "public", Name: name}); got != want {
			t.Errorf("%s is dropped: %v, want %v", name, got, want)
		}
	}
}
