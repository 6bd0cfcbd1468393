package local

import "context"

// DatabaseCheck tells what is at one of a target's databases.
type DatabaseCheck struct {
	URL           string // without its password
	Exists        bool
	ServerVersion string
	ToolVersion   string // of the database's own program, where one is used
	Tables        int
	Warnings      []string
}

// CheckDatabase connects to a database of the configuration and tells what is
// there. Nothing is changed.
func (a *Agent) CheckDatabase(ctx context.Context, rawURL string) (DatabaseCheck, error) {
	db, err := a.databaseAt(rawURL)
	if err != nil {
		return DatabaseCheck{URL: Redact(rawURL)}, err
	}
	info, err := db.engine.Check(ctx, db.url)
	return DatabaseCheck{
		URL: db.shown, Exists: info.Exists, ServerVersion: info.ServerVersion, ToolVersion: info.ToolVersion,
		Tables: len(info.Tables), Warnings: info.Warnings,
	}, err
}
