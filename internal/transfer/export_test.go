package transfer

import (
	"net/http"
	"time"
)

// InPieces returns options that fetch ranges of n bytes.
func InPieces(o Options, n int64) Options {
	o.piece = n
	return o
}

// Impatient returns options that cancel a request if it transfers no byte for d.
func Impatient(o Options, d time.Duration) Options {
	o.stallTimeout = d
	return o
}

// Transport returns the transport of requests for bytes.
func Transport(o Options) http.RoundTripper { return o.transport() }
