package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
)

// partSize is the approximate size of a part of a table, in bytes on disk.
const partSize = 16 << 20

// inParts splits large tables into ranges of their primary key, so that several connections can
// read one table. A table without a primary key that begins with an integer is not split. If the
// integers are unevenly distributed, the parts differ in size.
func inParts(ctx context.Context, c *sql.Conn, tables []source) ([]source, error) {
	var all []source
	for _, t := range tables {
		n := int(t.size / partSize)
		if n < 2 || t.number == "" || t.where != "" {
			all = append(all, t)
			continue
		}
		var low, high sql.NullString
		if err := c.QueryRowContext(ctx,
			"SELECT min("+t.number+"), max("+t.number+") FROM "+quote(t.table.Name)).Scan(&low, &high); err != nil {
			return nil, err
		}
		for _, where := range ranges(t.number, low.String, high.String, n) {
			part := t
			part.where = where
			all = append(all, part)
		}
	}
	return all, nil
}

// ranges returns the conditions of n roughly equal ranges of a column, from low to high. Together,
// the ranges contain every row. It returns a single empty condition if it cannot determine the
// ranges.
func ranges(column, low, high string, n int) []string {
	from, errLow := strconv.ParseInt(low, 10, 64)
	to, errHigh := strconv.ParseInt(high, 10, 64)
	step := (uint64(to) - uint64(from)) / uint64(n)
	if errLow != nil || errHigh != nil || step == 0 {
		return []string{""}
	}
	all := []string{fmt.Sprintf(" WHERE %s < %d", column, from+int64(step))}
	for i := 1; i < n; i++ {
		low := from + int64(step*uint64(i))
		if i == n-1 {
			return append(all, fmt.Sprintf(" WHERE %s >= %d", column, low))
		}
		all = append(all, fmt.Sprintf(" WHERE %[1]s >= %[2]d AND %[1]s < %[3]d", column, low, low+int64(step)))
	}
	return all
}
