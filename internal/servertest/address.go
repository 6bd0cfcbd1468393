package servertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// Patience is how long tests wait for what must come, such as a server that
// starts: it ends a hang, and says nothing of how long it should take.
const Patience = 3 * time.Minute

// Address returns a loopback address, host and port, that is free now, for a
// server that may also be ended and started again: its port is below those
// that the system gives to connections by itself.
func Address(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func freePort() (int, error) {
	var failures []error
	for range 1000 {
		port := 12000 + rand.IntN(20000) //nolint:gosec // any that is free will do
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
		failures = append(failures, err)
	}
	return 0, errors.Join(failures...)
}
