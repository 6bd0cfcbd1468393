package transfer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"

	"snap"
)

// isNetwork reports whether an error came from the connection rather than from the local disk or
// the program. Every error of the HTTP client counts, unless it is about a certificate or a local
// file, or refuses an address (see [guardedDialer]). A canceled context counts too, because
// [Options.watch] cancels a request that stalls. Callers first check whether the user canceled the
// transfer.
func isNetwork(err error) bool {
	var refused *snap.Error
	var timeout net.Error
	var op *net.OpError
	var file *os.PathError
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &refused) || errors.As(err, &file) || errors.As(err, &untrusted) {
		return false
	}
	return errors.Is(err, errStalled) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, context.Canceled) || errors.As(err, &op) || errors.As(err, &timeout) ||
		errors.Is(err, errCutShort)
}

var errCutShort = errors.New("the connection closed before the end of the response")
