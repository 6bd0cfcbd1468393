package engine

import (
	"database/sql"
	"fmt"

	"snap"
)

// Answer returns the only value of a query's result as text, and closes rows. If the result is not
// a single row with a single column, the error has code invalid.
func Answer(rows *sql.Rows) (string, error) {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var values []sql.NullString
	for len(values) < 2 && rows.Next() {
		var v sql.NullString
		into := []any{&v}
		for range len(columns) - 1 {
			into = append(into, new(any))
		}
		if err := rows.Scan(into[:len(columns)]...); err != nil {
			return "", err
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	if err := RequireOneValue(len(values), len(columns)); err != nil {
		return "", err
	}
	if !values[0].Valid {
		return Null, nil
	}
	return values[0].String, nil
}

// Null is the string that [Answer] returns for NULL.
const Null = "NULL"

// RequireOneValue returns an error unless a result has one row and one column.
func RequireOneValue(rows, columns int) error {
	if rows == 1 && columns == 1 {
		return nil
	}
	found := fmt.Sprintf("%d columns", columns)
	switch {
	case rows == 0:
		found = "no rows"
	case rows > 1:
		found = "several rows"
	}
	return snap.Invalid("the query returns "+found+" instead of one value",
		"select one value, for example with count(*)")
}
