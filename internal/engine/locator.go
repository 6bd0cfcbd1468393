package engine

// Locator is an engine whose databases are on servers.
type Locator interface {
	// Located returns the places that a URL names, without connecting. Several hosts are several places.
	Located(url string) ([]Location, error)
}

// Location is a server's host and port, and a database on it.
type Location struct{ Host, Database string }
