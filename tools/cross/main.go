// Command cross checks the types of the module in a folder, tests included, for every system and
// architecture that the programs are built for, to find code that does not compile on one of them.
// It type-checks the dependencies from source, because compiling them five more times would take
// minutes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("dir", ".", "folder of the module")
	flag.Parse()
	if err := check(*dir, "linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64",
		"windows/arm64"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check returns the errors of all platforms. A platform is written as system/architecture.
func check(dir string, platforms ...string) error {
	var all error
	for _, platform := range platforms {
		if err := checkFor(dir, platform); err != nil {
			all = errors.Join(all, fmt.Errorf("for %s: %w", platform, err))
		}
	}
	return all
}

func checkFor(dir, platform string) error {
	system, machine, _ := strings.Cut(platform, "/")
	loaded, err := packages.Load(&packages.Config{
		Dir: dir, Tests: true,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes |
			packages.NeedSyntax | packages.NeedTypesSizes,
	}, "./...")
	if err != nil {
		return err
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, mistake := range p.Errors {
			err = errors.Join(err, mistake)
		}
	})
	return err
}
