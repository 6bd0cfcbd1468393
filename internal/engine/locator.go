package engine

// Locator is an engine whose databases are on servers.
type Locator interface {
	// Located returns the places that a URL names, without connecting. Several hosts are several places.
	Located(url string) ([]Location, error)
}

// Location is a server's host and port, and a database on it. From is the SSH server that connects to
// the host, or "" if this machine does.
type Location struct{ From, Host, Database string }
