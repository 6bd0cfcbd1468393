//go:build !unix

package sqlite

import "os"

func keepOwner(*os.File, os.FileInfo) {}
