package snap

import "runtime/debug"

// Version returns the version of the running program: the tag it was built at, otherwise the
// revision in Go's form (v0.0.0-20261121015340-0e8b38b6c8a1, followed by +dirty for a modified
// tree), otherwise "devel". The go command records the version when it builds from a clone and when
// it runs `go install`, so no linker flag is needed.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
