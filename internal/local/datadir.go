package local

import (
	"path/filepath"
	"runtime"
)

// userData returns the directory for a program's data below the home directory, by the convention
// of the operating system.
func userData(home string, env func(string) string) string {
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "snapcli", "data")
	case "windows":
		if dir := env("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "snapcli", "data")
		}
	}
	return filepath.Join(home, ".local", "share", "snapcli")
}
