package webui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/cloudtest"
	"snap/internal/local"
	"snap/internal/servertest"
)

// A list that mixes many local and many cloud snapshots shows each once, over
// all its pages, at whatever times the local ones were made.
func TestManyOnBothSides(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	u := openUI(t, mia, "")
	want := map[string]bool{}
	var ids []string
	for i := range 120 {
		item := c.Push(mia, "cloud"+strconv.Itoa(i), []byte(strconv.Itoa(i)))
		want[item.ID], ids = true, append(ids, item.ID)
	}
	now := time.Now()
	for i := range 130 {
		// They are older and newer than the cloud's, and in between. Every tenth is a copy of a
		// cloud snapshot.
		s := local.Snapshot{Target: "here", Name: fmt.Sprintf("here-%03d", i), Type: snap.TypeSnapshot,
			Engine: snap.SQLite,
			Size:   1, SHA256: fmt.Sprintf("%064d", i), Created: now.Add(time.Duration(40-i) * time.Minute / 30)}
		if i%10 == 0 {
			s.Cloud = map[string]string{c.URL: ids[i*len(ids)/130]}
		} else {
			want[row{Local: &s}.ID()] = true
		}
		record(t, u, s)
	}
	seen := map[string]int{}
	path := "/snapshots"
	for pages := 0; path != "" && pages < 20; pages++ {
		a := u.get(path)
		u.must(a, http.StatusOK)
		for _, piece := range strings.Split(a.Body, `<tr id="`)[1:] {
			seen[piece[:strings.Index(piece, `"`)]]++
		}
		path = nextOf(a.Body)
	}
	for id := range want {
		if seen[id] != 1 {
			t.Errorf("%s is listed %d times", id, seen[id])
		}
	}
	if len(seen) != len(want) {
		t.Errorf("%d rows, want %d", len(seen), len(want))
	}
}

// nextOf returns the address of the page after, or nothing.
func nextOf(body string) string {
	before, _, found := strings.Cut(body, `" id="page-next"`)
	if !found {
		return ""
	}
	return strings.ReplaceAll(before[strings.LastIndex(before, `"`)+1:], "&amp;", "&")
}

// record puts a local snapshot's files in place, without a database behind it.
func record(t testing.TB, u *ui, s local.Snapshot) {
	t.Helper()
	dir, err := local.DataDir(u.Server.o.Env)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "snapshots", s.Target)
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for suffix, content := range map[string][]byte{".json": data, ".snap": []byte("x")} {
		if err := os.WriteFile(filepath.Join(dir, s.Name+suffix), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
