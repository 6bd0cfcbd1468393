package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Glob returns the paths of the files below dir that match a pattern of [path.Match]. Unlike in
// [filepath.Glob], characters such as [ in dir have no special meaning. Glob ignores folders that
// cannot be read, and returns nothing if the pattern is malformed.
func Glob(dir, pattern string) (paths []string) {
	names, _ := fs.Glob(os.DirFS(dir), pattern)
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(name)))
	}
	return paths
}

// EscapeGlob returns a pattern for [Glob] that matches exactly this name of a file.
func EscapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}
