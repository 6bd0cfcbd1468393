package transfer_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/transfer"
)

// A download closes all its files, also if it starts over.
func TestDownloadClosesItsFiles(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id, file := s.pushed(random(snapSize, 23)), target(t)
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if isGet(r) {
			s.serveWrong(w, r)
		}
		return isGet(r)
	})
	if _, _, err := transfer.Download(t.Context(), s.client(), id, file, quick()); err == nil {
		t.Fatal("wrong bytes were accepted")
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, filepath.Dir(file)) {
			t.Errorf("%s is open", name)
		}
	}
}
