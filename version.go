package snap

import "runtime/debug"

// Version is what is running, for both programs: the tag they were built at,
// else the revision as Go writes it (v0.0.0-20261121015340-0e8b38b6c8a1, with
// +dirty behind it when the tree had changes), else "devel". Go stamps it
// where it builds from a clone, also in `go install`; no linker flag is needed.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
