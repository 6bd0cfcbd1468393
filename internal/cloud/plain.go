package cloud

import (
	"context"
	"net/url"

	"snap"
	"snap/internal/blob"
)

// warnOfPlain tells the operator what would travel in clear: plain http is for
// this machine alone. It is no error, since a network may be trusted, or a
// proxy in front of the service may not have been told of in public_url.
func (s *Service) warnOfPlain(ctx context.Context) {
	if u, err := url.Parse(s.config.PublicURL); err == nil && plain(u) {
		s.log.WarnContext(ctx,
			"public_url is plain http: credentials and snapshots travel in clear; put TLS in front of the service "+
				"and say "+
				"https in public_url", "public_url", s.config.PublicURL)
	}
	if s3, ok := s.blobs.(*blob.S3); ok && plain(s3.Endpoint()) {
		s.log.WarnContext(ctx,
			"the storage's endpoint is plain http: snapshots travel in clear, and snapcli refuses that unless "+
				"cloud.plain_storage is set; give the storage https", "endpoint", s3.Endpoint().String())
	}
}

// plain reports whether what goes to a URL can be read on a network.
func plain(u *url.URL) bool { return u.Scheme == "http" && !snap.IsLoopback(u.Hostname()) }
