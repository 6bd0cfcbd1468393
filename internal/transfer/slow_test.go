package transfer_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"snap/internal/transfer"
)

// On a line with a round trip of 50 ms and a loss of 1 %, one TCP stream has about
// 12 packets in flight (Mathis and others, 1997: 1.22 divided by the square root of
// the loss rate). The proxy gives every connection exactly that.
const (
	roundTripTime = 50 * time.Millisecond
	window        = 12 * 1460
)

// lossyLine returns the address of a proxy to another address.
func lossyLine(t testing.TB, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			go carry(near, far)
			go carry(far, near)
		}
	}()
	return l.Addr().String()
}

// carry forwards one window of bytes per round trip, delayed by half a round trip.
func carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, window)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		// Bytes that have arrived in the meantime are sent too.
		_ = from.SetReadDeadline(time.Now().Add(time.Millisecond))
		more, _ := io.ReadFull(from, buffer[n:])
		_ = from.SetReadDeadline(time.Time{})
		<-time.After(roundTripTime / 2)
		if _, err := to.Write(buffer[:n+more]); err != nil {
			return
		}
		if n+more == window {
			<-time.After(roundTripTime / 2) // the time of the acknowledgement
		}
	}
}

// BenchmarkLossyLine measures the default number of connections against a single one, over a line with
// 50 ms of latency and 1 % loss.
func BenchmarkLossyLine(b *testing.B) {
	s := newService(b)
	s.public = "http://" + lossyLine(b, s.server.Listener.Addr().String())
	s.restart()
	s.partLen = testPiece / 2
	data := random(8*testPiece/2, 50)
	file, req := writeFile(b, data)
	var pull, push [2]time.Duration // one connection, the default
	for b.Loop() {
		for i, jobs := range []int{1, 0} {
			req.Name += "x"
			o := transfer.InPieces(transfer.Options{Jobs: jobs}, testPiece/2)
			var up transfer.Uploaded
			push[i] += timed(func() (err error) {
				up, err = transfer.Upload(b.Context(), s.client(), file, req, o)
				return err
			}, b)
			pull[i] += timed(func() error {
				_, _, err := transfer.Download(b.Context(), s.client(), up.ID, filepath.Join(b.TempDir(), "x"), o)
				return err
			}, b)
		}
	}
	b.ReportMetric(float64(push[0])/float64(push[1]), "push-of-one-stream")
	b.ReportMetric(float64(pull[0])/float64(pull[1]), "pull-of-one-stream")
}

func timed(f func() error, b *testing.B) time.Duration {
	b.Helper()
	start := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
