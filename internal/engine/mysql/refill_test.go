package mysql

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestRefill checks that a refill replaces the rows of some tables, and that it is refused if it
// would fire a trigger or break a foreign key.
func TestRefill(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, chooseFrom+"INSERT INTO customer VALUES (9, 'z', 2); INSERT INTO line VALUES (9, 2); "+
			"CREATE TABLE other (a int) ENGINE = MyISAM; CREATE TABLE more (a int); UPDATE log SET a = 5")
		if strings.HasPrefix(server, "mariadb") {
			script(t, to, "CREATE SEQUENCE more")
		}
		script(t, to, chooseFrom+"DROP TRIGGER noted; CREATE TABLE other (a int) ENGINE = MyISAM; DELETE FROM line; "+
			"DELETE FROM orders WHERE id = 2")
		d, _ := dumped(t, from)
		d.Trust = engine.Foreign
		if _, err := (Engine{}).Refill(t.Context(), to, d, []string{"customer", "log"}, engine.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"SELECT concat_ws(',', id, name, boss) FROM customer", "SELECT a FROM log"} {
			if got, want := sorted(t, to, query), sorted(t, from, query); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", query, got, want)
			}
		}
		before := contents(t, to)
		for only, want := range map[string]struct {
			code snap.Code
			says string
		}{
			"orders": {snap.CodeInvalid, "has the trigger noting"},
			"line":   {snap.CodeConflict, "line (`o`) to orders would not hold"},
			"other":  {snap.CodeInvalid, "is not transactional: its storage engine is MyISAM"},
			"more":   {snap.CodeNotFound, "no table more"},
			"none":   {snap.CodeUsage, "matches no table"},
		} {
			_, err := Engine{}.Refill(t.Context(), to, d, []string{only}, engine.Options{})
			if snap.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
				t.Errorf("%s: %v", only, err)
			}
		}
		var rest bytes.Buffer
		info, err := Engine{}.Dump(t.Context(), from, &rest,
			engine.Options{Jobs: 2, Choice: engine.Choice{ExcludeData: []string{"customer"}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Engine{}.Refill(t.Context(), to, dumpOf(rest.Bytes(), info), []string{"customer"}, engine.Options{})
		if snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("without rows: %v", err)
		}
		if after := contents(t, to); after != before {
			t.Error(difference(before, after))
		}
	})
}
