// Package ahead answers what needs nothing, `snapcli version` and
// `snapcli --help`, before the rest of the program is initialised.
//
// Before main runs, Go initialises every package of a program, and the ones
// that snapcli is made of take four times as long as a whole program that
// prints a line. It initialises next, of all packages whose imports are ready,
// the one whose import path sorts first. This one is a module of its own
// because its path then sorts before all others, and it imports only what os
// needs anyway, so its turn is right after os.
//
// Every other command line is left alone. The answers are those of
// internal/cli to the byte, and its tests hold them to that and to the order;
// where an answer cannot be written, it is left to internal/cli to say so.
package ahead

import (
	_ "embed"
	"os"
	"runtime"
	_ "unsafe" // for go:linkname
)

// help is what internal/cli prints; `make generate` writes it.
//
//go:embed help.txt
var help string

func init() {
	text := answer(os.Args[1:])
	if text == "" {
		return
	}
	if _, err := os.Stdout.WriteString(text); err == nil {
		os.Exit(0)
	}
}

// answer returns what these arguments print, or "" if they are not for us.
func answer(args []string) string {
	switch {
	case len(args) == 0:
		return help
	case len(args) > 1:
		return ""
	}
	switch args[0] {
	case "--help", "-h", "help":
		return help
	case "version":
		return "snapcli " + version(modinfo()) + " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"
	}
	return ""
}

// modinfo is what debug.ReadBuildInfo reads. Package debug itself is
// initialised too late.
//
//go:linkname modinfo runtime/debug.modinfo
func modinfo() string

// version returns the main module's version as snap.Version does, from the
// line "mod", its path, its version and its checksum.
func version(info string) string {
	_, mod := cut(info, "\nmod\tsnap\t")
	v, _ := cut(mod, "\t")
	if v == "" || v == "(devel)" {
		return "devel"
	}
	return v
}

// cut is strings.Cut, whose package is initialised too late.
func cut(s, sep string) (before, after string) {
	for i := range len(s) - len(sep) + 1 {
		if s[i:i+len(sep)] == sep {
			return s[:i], s[i+len(sep):]
		}
	}
	return s, ""
}
