// Package transfer moves snapshots over presigned URLs: in parallel, resumable after any
// interruption, fully verified, with memory use that does not grow with the snapshot. It needs only
// HTTP and the few calls of [Service].
//
// An upload reads the file once, in order. This pass computes the SHA-256 of the whole file and the
// CRC-64/NVME of each part, while earlier parts are being sent. Parts that the service already has
// are compared by checksum and not sent again.
//
// A download writes ranges to a preallocated, locked .part file next to the final one, with a
// journal of the pieces written. One pass follows the ranges in order and hashes them while they
// are written. Pieces that an earlier process left are read from the disk and verified too. The
// file gets its final name only when its SHA-256 is right and it is synced.
package transfer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"snap"
	"snap/api"
)

// Service plans a transfer and signs its URLs. It is an *api.Client or a storage profile.
type Service interface {
	Push(ctx context.Context, r api.PushRequest) (api.UploadPlan, error)
	Parts(ctx context.Context, id string, r api.PartsRequest) (api.PartsResponse, error)
	Complete(ctx context.Context, id string) (api.Snapshot, error)
	Pull(ctx context.Context, id string) (api.PullResponse, error)
}

// Progress is called with the number of bytes done, of total. It is called about ten times per
// second and once at the end, and never concurrently. The count can fall if bytes must be sent or
// fetched again.
type Progress func(done, total int64)

// Options configure a transfer. The zero value is usable.
type Options struct {
	Jobs     int          // concurrent connections; 0 means 4
	Progress Progress     // nil is silent
	HTTP     *http.Client // nil uses a client made for large bodies
	// Plain allows plain http, which is otherwise allowed only to this machine.
	Plain bool
	// Remote means that the service is on another machine. Its URLs must then not lead to an object
	// store on this machine or at a link-local address, where services trust everyone who can reach
	// them.
	Remote bool
	Roots  *x509.CertPool // certificate authorities for the object store; nil uses the system's
	// Wait pauses before a retry; nil uses a timer. If ctx is done first, it returns the error of
	// ctx.
	Wait func(ctx context.Context, d time.Duration) error

	piece        int64         // bytes per range; 0 uses pieceSize
	stallTimeout time.Duration // maximum time without a byte moved; 0 uses defaultStallTimeout
}

// defaultStallTimeout is how long a request may move no bytes before it is canceled and retried.
const defaultStallTimeout = time.Minute

func (o Options) withDefaults() Options {
	if o.Jobs < 1 {
		o.Jobs = 4
	}
	if o.Wait == nil {
		o.Wait = api.Wait
	}
	if o.stallTimeout <= 0 {
		o.stallTimeout = defaultStallTimeout
	}
	client := http.Client{Transport: o.transport()}
	if o.HTTP != nil {
		client = *o.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTP = &client
	return o
}

// transport returns a transport for few connections with large bodies. It does not use HTTP/2,
// which would send all parts over one connection, where one lost packet delays them all.
func (o Options) transport() *http.Transport {
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	guarded := guardedDialer{direct: dial, remote: o.Remote, proxies: &sync.Map{}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               guarded.proxy,
		DialContext:         dialer(guarded.dial).receivingRefusals,
		TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: o.Jobs,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
		Protocols:           protocols,
	}
}

// meter counts bytes and periodically reports the count.
type meter struct {
	done   atomic.Int64
	total  int64
	report Progress
}

// run reports the count until stop is called. stop reports the final count.
func (m *meter) run() (stop func()) {
	if m.report == nil {
		return func() {}
	}
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			m.report(m.done.Load(), m.total)
			select {
			case <-tick.C:
			case <-end:
				m.report(m.done.Load(), m.total)
				return
			}
		}
	})
	return func() { close(end); ended.Wait() }
}

// watch cancels a request that moves no bytes for a while. Each call of alive restarts that period.
func (o Options) watch(ctx context.Context) (watched context.Context, alive, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(o.stallTimeout, func() {
		cancel(fmt.Errorf("%w for %s", errStalled, snap.Span(o.stallTimeout)))
	})
	return watched, func() { timer.Reset(o.stallTimeout) }, func() { timer.Stop(); cancel(nil) }
}
