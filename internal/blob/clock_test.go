package blob_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"snap"
	"snap/internal/blob"
	"snap/internal/servertest"
)

// A real S3 server refuses the requests of a service whose clock is an hour behind
// or ahead of its own. The error mentions the clocks.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			bucket, err := url.Parse(servertest.S3(t))
			if err != nil {
				t.Fatal(err)
			}
			s, err := blob.OpenS3Through(t.Context(), bucket.String(), nil,
				func(next http.RoundTripper) http.RoundTripper {
					return signedAt{t, off, bucket.User, next}
				})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Begin(t.Context(), "object", 5, 5)
			if snap.CodeOf(err) != snap.CodeUnavailable ||
				!strings.Contains(err.Error(), "the object store's clock differs") {
				t.Errorf("begin: %v, want an error that names the clock", err)
			}
		})
	}
}

// signedAt signs requests again with a wrong clock.
type signedAt struct {
	t    *testing.T
	off  time.Duration
	key  *url.Userinfo
	next http.RoundTripper
}

func (s signedAt) RoundTrip(r *http.Request) (*http.Response, error) {
	secret, _ := s.key.Password()
	then := time.Now().Add(s.off).Round(0)
	synctest.Test(s.t, func(*testing.T) { // in a bubble, time passes while all goroutines wait
		<-time.After(time.Until(then))
		r = signer.SignV4(*r, s.key.Username(), secret, "", "us-east-1")
	})
	return s.next.RoundTrip(r)
}
