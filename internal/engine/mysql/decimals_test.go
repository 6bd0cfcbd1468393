package mysql

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// Exact numbers in documents are restored unchanged. MariaDB stores a document as text, and MySQL
// stores such numbers as decimals.
func TestExactNumbersInDocuments(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		text := `CREATE TABLE d (id INT PRIMARY KEY, j JSON, v VARCHAR(20)); INSERT INTO d VALUES
			(1, '{"a": 1.50, "b": [1.0, 2.5, 100.0, -0.0, 1e100, 18446744073709551615]}', '1.50'), (2, NULL, '3.0')`
		if strings.HasPrefix(server, "mysql") {
			text += `, (3, JSON_OBJECT('pri"ce\\', CAST(1.50 AS DECIMAL(5,2)), 'l', JSON_ARRAY(1, JSON_ARRAY(0.1,
				CAST(-0.00 AS DECIMAL(5,2)), '1.50'), JSON_OBJECT('ü😀\n', 123456789012345678901234567890.12345))), ''),
			(4, CAST(CAST(2.500 AS DECIMAL(9,3)) AS JSON), ''), (5, CAST(99999999999999999999 AS JSON), ''),
			(6, JSON_ARRAY(1.10, 1.1e0, 0.300000000000000000000000000001, 3.00, 'x', TRUE, NULL, 7.70), 'x')`
		}
		script(t, from, text)
		for _, trust := range []engine.Trust{engine.Mine, engine.Ours, engine.Foreign} {
			d, _ := dumped(t, from)
			d.Trust = trust
			if err := load(t, to, d, true); err != nil {
				t.Fatal(err)
			}
			if a, b := rowsOfTable(t, from, "d"), rowsOfTable(t, to, "d"); a != b ||
				strings.HasPrefix(server, "mysql") && !strings.Contains(a, "2.500") {
				t.Errorf("trust %v: %s", trust, difference(a, b))
			}
		}
	})
}

// rowsOfTable returns all rows of a table as strings.
func rowsOfTable(t testing.TB, url, table string) string {
	t.Helper()
	db, _ := openURL(t, url)
	defer db.Close()
	c, err := session(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return strings.Join(answer(t, c, "SELECT * FROM "+quote(table)+" ORDER BY 1"), "\n")
}

// Each number that must be set as a decimal is found with its path, at any depth.
func TestPathsOfExactNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		path, text := "$", "1.50"
		for range rapid.IntRange(0, 5).Draw(t, "depth") {
			if rapid.Bool().Draw(t, "array") {
				before := rapid.SliceOfN(rapid.SampledFrom([]string{"1", `"x"`, "null", "[]", "{}",
					`{"k":[2.5]}`}), 0, 3).
					Draw(t, "before")
				path = strings.Replace(path, "$", "$["+string(rune('0'+len(before)))+"]", 1)
				text = "[" + strings.Join(append(before, text, "true"), ",") + "]"
				continue
			}
			path, text = strings.Replace(path, "$", `$."k y"`, 1), `{"a":{"b":[1]},"k y":`+text+`,"z":1e5}`
		}
		paths, numbers, err := exactNumbers(text)
		if err != nil || len(paths) != 1 || paths[0] != path || numbers[0] != "1.50" {
			t.Fatalf("%s: %q, not %q: %q, %v", text, paths, path, numbers, err)
		}
	})
}

// TestLongNumber checks that a negative number of 19 digits counts as one that no integer can hold.
func TestLongNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"[-9223372036854775809]": true, "[18446744073709551616]": true,
		"[922337203685477580]": false, "[1234567890, 1234567890]": false} {
		if longNumber([]byte(text)) != want {
			t.Errorf("%s: not %t", text, want)
		}
	}
}
