//go:build !unix

package sqlite

func isFull(error) bool { return false }
