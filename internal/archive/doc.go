// Package archive reads and writes the snapshot file: one file with a header, sections of
// compressed blocks, a JSON manifest and a footer. docs/snapshot-file.md is its specification.
//
// A file is written in one pass with bounded memory. A file is read as untrusted input: every byte
// is covered by a checksum, sizes are limited before memory is allocated, and no name from the file
// becomes a path.
package archive
