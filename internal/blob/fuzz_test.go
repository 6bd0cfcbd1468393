package blob

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
)

// FuzzUploadToken checks that only signed tokens can be opened, and only until they expire.
func FuzzUploadToken(f *testing.F) {
	secret, now := []byte("0123456789abcdef0123456789abcdef"), time.Unix(1_800_000_000, 0)
	good := SignToken(secret, uploadPart, partTicket{Upload: "u", Number: 1, Size: 5, CRC64: "x",
		Expires: now.Unix() + 60})
	for _, seed := range []string{good, good + "=", strings.ToLower(good), "." + good, good[:len(good)-1], "", ".",
		"e30.", SignToken([]byte("another"), uploadPart, partTicket{Upload: "u"})} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		got, err := openPartTicket(secret, token, now)
		if err == nil && SignToken(secret, uploadPart, got) != good {
			t.Fatalf("%q opens as %+v", token, got)
		}
		if _, err := openPartTicket(secret, token, now.Add(time.Minute)); err == nil {
			t.Fatalf("%q opens after its end", token)
		}
	})
}

// FuzzJournal checks that any journal, even one damaged by a crash or altered on
// the disk, only yields parts that the upload can have.
func FuzzJournal(f *testing.F) {
	h := head{Size: 40 << 20, PartSize: 16 << 20}
	for _, seed := range []string{"", "{}\n", `{"n":1}` + "\n" + `{"n":2`, "\x00\x00", "1 16777216 abc\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		parts, err := readJournal(file, h)
		if err != nil {
			return
		}
		for number, p := range parts {
			if number != p.Number || number < 1 || number > 3 || p.Size < 0 || p.Size > h.PartSize {
				t.Fatalf("part %d is %+v", number, p)
			}
		}
	})
}

// FuzzKey checks that the file of an accepted key is inside the folder.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{"snap_x", "a/b", "../x", "/x", "a//b", ".", "a/../../b", "a\\b", "a\x00b", "CON"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if checkKey(key) == nil && !filepath.IsLocal(filepath.FromSlash(key)) {
			t.Fatalf("the key %q leads out of the folder", key)
		}
	})
}

// FuzzBucketURL checks that any URL either opens the bucket that it names or gives an error that
// shows no secret.
func FuzzBucketURL(f *testing.F) {
	for _, seed := range []string{"s3://b", "s3://b/p?endpoint=http://127.0.0.1:9", "s3://K:verysecret@b",
		"s3://b?endpoint=x", "s3://b?lookup=dns&region=eu", "s3://b?a=b", "", "s3://%zz", "s3://[::1]/x",
		"s3://b:9000/p", "s3://name:/p"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rawURL string) {
		s, err := OpenS3(t.Context(), rawURL, nil)
		if u, _ := url.Parse(rawURL); err == nil && (s.bucket == "" || s.bucket != u.Hostname()) {
			t.Fatalf("%q opens the bucket %q", rawURL, s.bucket)
		}
		if err != nil && (snap.CodeOf(err) != snap.CodeUsage || strings.Contains(rawURL, ":verysecret@") &&
			strings.Contains(err.Error(), "verysecret")) {
			t.Fatalf("%q: %v", rawURL, err)
		}
	})
}
