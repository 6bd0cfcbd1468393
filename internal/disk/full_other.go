//go:build !unix

package disk

// Full returns false: the error for a full disk is not recognized on this system.
func Full(error) bool { return false }
