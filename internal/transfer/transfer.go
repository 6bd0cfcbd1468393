// Package transfer moves the bytes of snapshots over presigned URLs: in
// parallel, resumable after any interruption, verified to the last byte, in
// memory that does not grow with the snapshot. It needs nothing but HTTP and
// the few calls of [Service].
//
// An upload reads the file once, in order: that pass makes the SHA-256 of the
// whole and the CRC-64/NVME of each part, while the parts that are behind it
// are being sent. Parts that the service has already are compared by checksum
// and not sent again.
//
// A download writes ranges into a preallocated file next to the final one,
// named .part and locked, with a journal of what landed. One pass in order
// follows the ranges and hashes them while they are written; what an earlier
// process left is read from the disk for it, and never trusted unread. The final
// name appears only when the whole has its SHA-256 and is synced.
package transfer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"snap/api"
)

// Service is what plans a transfer and signs its URLs: an *api.Client, or a
// storage profile.
type Service interface {
	Push(ctx context.Context, r api.PushRequest) (api.UploadPlan, error)
	Parts(ctx context.Context, id string, r api.PartsRequest) (api.PartsResponse, error)
	Complete(ctx context.Context, id string) (api.Snapshot, error)
	Pull(ctx context.Context, id string) (api.PullResponse, error)
}

// Progress is called with how many bytes of total are in place. It is called
// from one goroutine at a time, a few times a second, and once at the end. The
// count can fall when bytes have to be sent again.
type Progress func(done, total int64)

// Options of a transfer. The zero value is usable.
type Options struct {
	Jobs     int          // connections at once; 0 is 4
	Progress Progress     // nil is silent
	HTTP     *http.Client // nil for one made for large bodies
	// Plain lets bytes travel over plain http, which is otherwise refused but
	// on this machine.
	Plain bool
	// Remote says that the service is on another machine. It may then not name a
	// storage on this machine or at a link-local address, where services answer
	// that trust whoever can reach them.
	Remote bool
	Roots  *x509.CertPool // who may vouch for the storage; nil is whom the system trusts
	// Wait pauses before a retry; nil waits for real. It returns early with
	// the context's error.
	Wait func(ctx context.Context, d time.Duration) error

	piece int64         // bytes of one range; 0 is what pieceSize returns
	still time.Duration // how long no byte may move; 0 is stall
}

// stall is how long a request may move no byte before it is given up and
// tried again.
const stall = time.Minute

func (o Options) complete() Options {
	if o.Jobs < 1 {
		o.Jobs = 4
	}
	if o.Wait == nil {
		o.Wait = api.Wait
	}
	if o.still <= 0 {
		o.still = stall
	}
	client := http.Client{Transport: o.transport()}
	if o.HTTP != nil {
		client = *o.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTP = &client
	return o
}

// newTransport returns one for few connections with large bodies. HTTP/2 would
// put all parts on one connection, and so on one lost packet.
func (o Options) transport() *http.Transport {
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	reach := reach{direct: dial, remote: o.Remote, proxies: &sync.Map{}}
	return &http.Transport{
		Proxy:               reach.proxy,
		DialContext:         dialer(reach.dial).hearing,
		TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: o.Jobs,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
		Protocols:           onlyHTTP1(),
	}
}

func onlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// meter counts bytes in place and tells of them now and then.
type meter struct {
	done  atomic.Int64
	total int64
	tell  Progress
}

// run tells of the count until stop is called, which tells the last one.
func (m *meter) run() (stop func()) {
	if m.tell == nil {
		return func() {}
	}
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			m.tell(m.done.Load(), m.total)
			select {
			case <-tick.C:
			case <-end:
				m.tell(m.done.Load(), m.total)
				return
			}
		}
	})
	return func() { close(end); ended.Wait() }
}

// watch cancels a request that moves no byte for a while. Each call of alive
// gives it that while again.
func (o Options) watch(ctx context.Context) (watched context.Context, alive, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(o.still, func() { cancel(errStalled) })
	return watched, func() { timer.Reset(o.still) }, func() { timer.Stop(); cancel(nil) }
}
