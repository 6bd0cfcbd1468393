// Package delta describes one snapshot file relative to another. A delta consists of ranges of the
// base's content to copy, and of compressed literals. Applied to the base, it gives the result's
// file byte for byte. docs/delta-file.md is its specification.
//
// A delta is written in one pass over the result, after one pass over the base, in bounded memory.
// It is read as untrusted input: sizes and work are limited, and nothing counts as the result
// unless it has the announced SHA-256.
package delta
