package engine

// Locator is an engine whose databases are on servers.
type Locator interface {
	// Located returns the locations that a URL names, without connecting: one for each host in the
	// URL.
	Located(url string) ([]Location, error)
}

// Location is a server's host and port, and a database on it. From is the SSH server through which
// the host is reached, or "" if this machine connects to the host directly.
type Location struct{ From, Host, Database string }
