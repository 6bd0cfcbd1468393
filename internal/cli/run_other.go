//go:build !unix

package cli

import "os"

// passed are the signals that `snapcli run` ignores. Its command receives them from the console.
var passed = []os.Signal{os.Interrupt}
