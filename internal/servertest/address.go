package servertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Patience is how long tests wait for an event that must happen, such as the start of a server. The
// limit only ends tests that hang: nothing that works takes this long, even on a busy machine.
const Patience = time.Hour

// Address returns a loopback address, host and port, that is free now. A server can also be stopped
// and started again there, because the port is below the ephemeral ports, which the system gives to
// connections.
func Address(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// freePort returns a free port. No test of another process gets the same port before this process
// ends, so a program may listen on it later, or more than once.
func freePort() (int, error) {
	var failures []error
	for range 1000 {
		port := 12000 + rand.IntN(20000) //nolint:gosec // any that is free will do
		err := reserve(port)
		if err == nil {
			return port, nil
		}
		failures = append(failures, err)
	}
	return 0, errors.Join(failures...)
}

// reserve reserves a TCP port by binding the UDP port of the same number until the process ends.
// Other test processes then cannot bind that UDP port, while the TCP port stays free for a server.
func reserve(port int) error {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	held, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, held.Close())
	}
	reserved.Store(port, held)
	return l.Close()
}

// reserved keeps the reservations of this process from being garbage-collected, which would end
// them.
var reserved sync.Map
