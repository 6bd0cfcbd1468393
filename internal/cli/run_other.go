//go:build !unix

package cli

import "os"

// relayedSignals are the signals that do not end `snapcli run`. Its command receives them from the
// console.
var relayedSignals = []os.Signal{os.Interrupt}
