// Package move carries all that a service keeps, records and bytes, to another
// place: Transfer to another database and storage, BackUp to a folder, and
// Restore back from it. What is carried is verified by its SHA-256, and whoever
// is killed half-way goes on with what is there at the next run.
//
// Secrets are part of it: the keys that sign tokens and URLs, and the hashes of
// API keys. What is written here is readable by its owner only.
package move
