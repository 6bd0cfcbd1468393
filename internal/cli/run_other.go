//go:build !unix

package cli

import "os"

// passed are the signals that do not end `snapcli run`. The console sends them to its command too.
var passed = []os.Signal{os.Interrupt}
