package cloud_test

import (
	"log/slog"
	"testing"

	"snap"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// Services must not share an object store: the second one refuses to start and says why. The first
// one, or a replica of it, starts again.
func TestStorageBelongsToOneService(t *testing.T) {
	t.Parallel()
	bucket := servertest.S3(t)
	first := cloudtest.Start(t, cloudtest.Options{BlobURL: bucket})
	first.Push(first.As("alice@acme.test"), "shop", []byte("bytes"))

	options := cloud.Options{Log: slog.New(slog.DiscardHandler)}
	again, err := cloud.New(t.Context(), first.Config, options)
	if err != nil {
		t.Fatalf("the same service: %v", err)
	}
	again.Close()

	other := first.Config
	other.DataDir = t.TempDir()
	_, err = cloud.New(t.Context(), other, options)
	if snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("another service: %v, want a refusal", err)
	}
	other.Blob.URL = servertest.S3(t)
	apart, err := cloud.New(t.Context(), other, options)
	if err != nil {
		t.Fatalf("in a bucket of its own: %v", err)
	}
	apart.Close()
}

// A service starts even if its object store does not answer.
func TestStartsWithoutItsStorage(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloud.Config{PublicURL: "http://127.0.0.1:1", DataDir: t.TempDir(), Auth: cloud.Auth{ClientID: "snapcli"},
		Blob: cloud.Blob{URL: "s3://key:secret@bucket?endpoint=http://127.0.0.1:1"}}
	s, err := cloud.New(t.Context(), c, cloud.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
