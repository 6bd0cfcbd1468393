// Package move copies all data of a service, records and bytes: Transfer to another database and
// object store, BackUp to a folder, and Restore from that folder. All data is verified by SHA-256.
// Run a killed command again to resume it.
//
// The data includes secrets: the keys that sign tokens and URLs, and the hashes of API keys. All
// files that this package writes are readable by their owner only.
package move
