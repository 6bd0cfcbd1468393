package cloud

import (
	"context"
	"net/url"

	"snap"
	"snap/internal/blob"
)

// warnUnencrypted warns the operator about unencrypted connections to other machines. They are not
// an error, because the network may be trusted, or a proxy in front of the service may use TLS
// although public_url does not say so.
func (s *Service) warnUnencrypted(ctx context.Context) {
	if u, err := url.Parse(s.config.PublicURL); err == nil && isUnencrypted(u) {
		s.log.WarnContext(ctx,
			"public_url is plain http: credentials and snapshots are sent unencrypted; put TLS in front of the "+
				"service and use https in public_url", "public_url", s.config.PublicURL)
	}
	if s3, ok := s.transfers.blobs.(*blob.S3); ok && isUnencrypted(s3.Endpoint()) {
		s.log.WarnContext(ctx,
			"the object store's endpoint is plain http: snapshots are sent unencrypted, and snapcli refuses that "+
				"unless cloud.plain_storage is set; use https for the object store", "endpoint", s3.Endpoint().String())
	}
}

// isUnencrypted reports whether requests to a URL could be read on the network.
func isUnencrypted(u *url.URL) bool { return u.Scheme == "http" && !snap.IsLoopback(u.Hostname()) }
