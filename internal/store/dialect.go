package store

// dialect is the database's kind, where the SQL of the two differs.
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
