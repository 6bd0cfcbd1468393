//go:build !unix

package cli

import "os"

// relayedSignals are the signals that do not end `snapcli run`. They need not be relayed here,
// because the console sends them to the command as well.
var relayedSignals = []os.Signal{os.Interrupt}
