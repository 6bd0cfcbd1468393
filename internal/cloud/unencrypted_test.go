package cloud_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"snap/internal/cloud"
)

// A start warns of unencrypted connections, and of nothing else.
func TestStartWarnsOfPlainHTTP(t *testing.T) {
	t.Parallel()
	const bucket = "s3://key:secret@bucket?endpoint="
	for _, tt := range []struct {
		name, public, blobs string
		warned              []string
	}{
		{"this machine", "http://127.0.0.1:1", bucket + "http://localhost:1", nil},
		{"a folder", "https://snap.example", "", nil},
		{"https", "https://snap.example", bucket + "https://127.0.0.1:1", nil},
		{"Amazon's", "https://snap.example", "s3://key:secret@bucket", nil},
		{"plain service", "http://snap.example", "", []string{"public_url=http://snap.example"}},
		{"plain storage", "https://snap.example", bucket + "http://minio.invalid:9000",
			[]string{"endpoint=http://minio.invalid:9000"}},
		{"plain both", "http://snap.example", bucket + "http://minio.invalid:9000",
			[]string{"public_url=", "endpoint="}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			cloud.WarnOfPlain(t, slog.New(slog.NewTextHandler(&log, nil)), tt.public, tt.blobs)
			if n := strings.Count(log.String(), "level=WARN"); n != len(tt.warned) {
				t.Errorf("%d warnings, want %d:\n%s", n, len(tt.warned), log.String())
			}
			for _, text := range tt.warned {
				if !strings.Contains(log.String(), text) {
					t.Errorf("no warning with %q:\n%s", text, log.String())
				}
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the log has the secret:\n%s", log.String())
			}
		})
	}
}

// A start with plain http logs the warning.
func TestStartWarns(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := cloud.Config{PublicURL: "http://snap.example", DataDir: t.TempDir(), Auth: cloud.Auth{ClientID: "snapcli"}}
	s, err := cloud.New(t.Context(), c, cloud.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(log.String(), "public_url is plain http") {
		t.Errorf("no warning:\n%s", log.String())
	}
}
