package sqlite

import (
	"slices"
	"strings"
)

// keywords are the keywords of SQLite's grammar. None of them can be part of a type, so that a type
// can never contain a clause.
const keywords = ` ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN
 BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE
 CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH
 ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL
 GENERATED GLOB GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD
 INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL
 NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE
 RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT
 SELECT SET STORED STRICT TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE
 USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHIN WITHOUT `

// isTypeWord reports whether a word can be part of a type.
func isTypeWord(word string) bool {
	for i := range len(word) {
		if !isIdentifier(word[i]) || word[i] == '$' || word[i] >= 0x80 {
			return false
		}
	}
	return word != "" && !isDigit(word[0]) && !strings.Contains(strings.ReplaceAll(keywords, "\n", " "),
		" "+strings.ToUpper(word)+" ")
}

// affinity returns a type with the same affinity as the named type, by SQLite's rules (section 3.1
// of https://www.sqlite.org/datatype3.html).
func affinity(name string) string {
	name = strings.ToUpper(name)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
	}
	switch {
	case name == "":
		return ""
	case has("INT"):
		return "INT"
	case has("CHAR", "CLOB", "TEXT"):
		return "TEXT"
	case has("BLOB"):
		return "BLOB"
	case has("REAL", "FLOA", "DOUB"): //nolint:misspell // the part of a name that SQLite looks for
		return "REAL"
	}
	return "NUMERIC"
}
