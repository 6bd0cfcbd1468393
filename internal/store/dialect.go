package store

// dialect is the kind of database: SQLite and PostgreSQL need different SQL in places.
type dialect int

const (
	sqlite dialect = iota
	postgres
)

// dialectOf returns the dialect of the database with this URL, as in [Options].
func dialectOf(url string) dialect {
	if url == "" {
		return sqlite
	}
	return postgres
}
