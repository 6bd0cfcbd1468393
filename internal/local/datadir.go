package local

import (
	"path/filepath"
	"runtime"
)

// userDataDir returns snapcli's data directory by the convention of the operating system.
func userDataDir(home string, env func(string) string) string {
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
