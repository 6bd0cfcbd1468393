// Package move carries all that a service keeps, records and bytes, to another
// place: Transfer to another database and storage, BackUp to a folder, and
// Restore back from it. Everything is verified by its SHA-256, and a run that
// was killed resumes at the next run with what is there.
//
// Secrets are part of it: the keys that sign tokens and URLs, and the hashes of
// API keys. All files written here are readable by their owner only.
package move
