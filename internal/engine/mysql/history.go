package mysql

import (
	"context"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
)

// A system-versioned table of MariaDB keeps every version of a row with the start and end of its
// validity. A dump contains all row versions if the server can restore them (MariaDB 10.11 and
// later) and they are based on times rather than transactions.

// hiddenPeriod is the period of a table that does not name its own. A period is the pair of columns
// of a system-versioned table that hold the start and end of a row's validity.
var hiddenPeriod = []string{"row_start", "row_end"}

// forever has the end times of current rows. They differ between servers, so a dump has DEFAULT
// instead.
var forever = map[string]bool{"2038-01-19 03:14:07.999999": true, "2106-02-07 06:28:15.999999": true}

// histories returns the periods, by table, of the system-versioned tables whose history a dump can
// hold, and the names of the other system-versioned tables.
func histories(ctx context.Context, db querier, name string) (periods map[string][]string, lost []string, err error) {
	versioned, err := queryStrings(ctx, db,
		"SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'SYSTEM VERSIONED' "+
			"ORDER BY table_name", name)
	if err != nil || len(versioned) == 0 {
		return nil, nil, err
	}
	var canLoad bool
	if err := db.QueryRowContext(ctx,
		"SELECT count(*) FROM information_schema.system_variables WHERE variable_name = "+
			"'SYSTEM_VERSIONING_INSERT_HISTORY'").Scan(&canLoad); err != nil {
		return nil, nil, err
	}
	if !canLoad {
		return nil, versioned, nil
	}
	named, byTransaction, err := namedPeriods(ctx, db, name)
	if err != nil {
		return nil, nil, err
	}
	periods = map[string][]string{}
	for _, table := range versioned {
		switch {
		case byTransaction[table]:
			lost = append(lost, table)
		case named[table] != nil:
			periods[table] = named[table]
		default:
			periods[table] = hiddenPeriod
		}
	}
	return periods, lost, nil
}

// namedPeriods returns the periods, by table, of the tables that name the columns of their period.
// It also returns which of these tables use transactions instead of times.
func namedPeriods(ctx context.Context, db querier, name string) (map[string][]string, map[string]bool, error) {
	rows, err := db.QueryContext(ctx, `SELECT table_name, column_name, data_type FROM information_schema.columns
		WHERE table_schema = ? AND generation_expression IN ('ROW START', 'ROW END')
			ORDER BY table_name, generation_expression DESC`, name)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	periods, byTransaction := map[string][]string{}, map[string]bool{}
	for rows.Next() {
		var table, column, kind string
		if err := rows.Scan(&table, &column, &kind); err != nil {
			return nil, nil, err
		}
		periods[table] = append(periods[table], column)
		byTransaction[table] = byTransaction[table] || kind != "timestamp"
	}
	return periods, byTransaction, rows.Err()
}

// keepHistory records the tables whose history the dump contains. If reason is not empty, the dump
// must have only current rows, and keepHistory adds a warning with the reason instead.
func (s structure) keepHistory(ctx context.Context, c querier, name string, info *engine.Info, reason string) error {
	periods, _, err := histories(ctx, c, name)
	if err != nil {
		return err
	}
	if reason != "" && len(periods) > 0 {
		info.Warnings = append(info.Warnings, historyLost(slices.Sorted(maps.Keys(periods)))+", because "+reason)
		return nil
	}
	for i, t := range s.Tables {
		s.Tables[i].Period = periods[t.Name]
	}
	return nil
}

func historyLost(tables []string) string {
	return "only the current rows of these system-versioned tables are in the snapshot, not their history: " +
		strings.Join(tables, ", ")
}

func (s structure) hasHistory() bool {
	return slices.ContainsFunc(s.Tables, func(t definition) bool { return t.Period != nil })
}

// periodOf returns a table's period, or nil if its rows have none.
func (s structure) periodOf(table string) []string {
	for _, t := range s.Tables {
		if t.Name == table {
			return t.Period
		}
	}
	return nil
}

func errNoHistory(where string, cause error) error {
	return &snap.Error{
		Code: snap.CodeInvalid, Cause: cause,
		Detail: "the server " + where +
			" cannot load the history of system-versioned tables, which this snapshot contains",
		Hint: "load it into MariaDB 10.11 or later; nothing was replaced",
	}
}
