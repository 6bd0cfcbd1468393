package store

// dialect is the kind of database: SQLite and PostgreSQL need different SQL in places.
type dialect int

const (
	sqlite dialect = iota
	postgres
)

// rowLock returns the clause with which PostgreSQL locks the selected rows until the transaction
// ends. SQLite has one writer, so it needs none.
func (s *Store) rowLock(clause string) string {
	if s.dialect == postgres {
		return ` ` + clause
	}
	return ``
}
