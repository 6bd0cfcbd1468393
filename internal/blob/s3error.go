package blob

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"snap"
)

// s3Error converts an error of the object store according to its code. The store's message is only
// for the log, because it may name buckets and hosts.
func s3Error(what string, err error) error {
	if err == nil {
		return nil
	}
	cause := fmt.Errorf("%s: %w", what, err)
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return &snap.Error{Code: snap.CodeUnavailable, Detail: "the certificate of the object store is not trusted",
			Hint: "set SSL_CERT_FILE to a file with the certificate of its authority, on the service's machine or, " +
				"with a storage profile, on this one", Cause: cause}
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return &snap.Error{Code: snap.CodeUnavailable, Detail: "the object store does not answer",
			Hint: "try again later", Cause: cause}
	}
	switch answer.Code {
	case "NoSuchKey", "NoSuchUpload", "NotFound":
		return fmt.Errorf("%s: %w", what, snap.ErrNotFound)
	case "BadDigest", "XAmzContentChecksumMismatch", "InvalidPart", "InvalidPartOrder":
		return &snap.Error{Code: snap.CodeChecksumMismatch,
			Detail: "the bytes that arrived do not have the announced checksum", Hint: "push again", Cause: cause}
	case "RequestTimeTooSkewed":
		return &snap.Error{
			Code:   snap.CodeUnavailable,
			Detail: "the object store's clock differs too much from the clock with which the request was signed",
			Hint: "ask the service's operator to synchronize both clocks with NTP; with a storage profile, this " +
				"machine signs",
			Cause: cause,
		}
	case "XMinioStorageFull", "InsufficientCapacity":
		return storageFull(err)
	}
	if answer.StatusCode == http.StatusInsufficientStorage {
		return storageFull(err)
	}
	return &snap.Error{
		Code:   snap.CodeUnavailable,
		Detail: fmt.Sprintf("the object store refused the request with status %d (%s)", answer.StatusCode, answer.Code),
		Hint:   "check its URL, credentials and permissions, or ask its operator",
		Cause:  fmt.Errorf("%s: %s: %w", what, answer.Code, err),
	}
}
