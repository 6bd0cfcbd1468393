package cloud_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// BenchmarkListOverHTTP measures how many first pages of 50 the service lists
// a second on loopback, the API key checked at every request, as a part of what
// the same server answers when it gives a constant of equal size, behind the
// same middleware. Both are taken turn by turn in one run; client and server
// share the machine's cores.
func BenchmarkListOverHTTP(b *testing.B) {
	for _, db := range []string{"sqlite", "postgres"} {
		b.Run(db, func(b *testing.B) {
			o := cloudtest.Options{}
			if db == "postgres" {
				o.DatabaseURL = servertest.Postgres(b)
			}
			benchmarkList(b, db, o)
		})
	}
}

func benchmarkList(b *testing.B, db string, o cloudtest.Options) {
	c := cloudtest.Start(b, o)
	mia := c.As("mia@acme.test")
	for i := range 100 {
		c.Push(mia, "shop", fmt.Append(nil, "snapshot ", i))
	}
	key := c.Key("mia@acme.test")
	page := fetchPage(b, c.URL+api.MountAgent+"/snapshots", key)
	constant := httptest.NewServer(c.Service.Wrapped(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(page)
	})))
	defer constant.Close()
	var listed, answered float64
	const rounds = 3
	for range rounds {
		listed += perSecond(b, c.URL+api.MountAgent+"/snapshots", key) / rounds
		answered += perSecond(b, constant.URL, key) / rounds
	}
	fmt.Printf("\n%s: listing over HTTP: %.0f pages of 50 a second (%.0f a core), %.2f of the %.0f that a constant of %d bytes gets\n",
		db, listed, listed/float64(runtime.NumCPU()), listed/answered, answered, len(page))
	for b.Loop() { // the line is the result
	}
	b.ReportMetric(listed/answered, "of-constant")
	b.ReportMetric(listed/float64(runtime.NumCPU()), "pages/s/core")
}

func fetchPage(b *testing.B, url, key string) []byte {
	b.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s: status %d, %v", url, res.StatusCode, err)
	}
	return data
}

// perSecond sends requests for a second from a few clients and returns how
// many were answered.
func perSecond(b *testing.B, url, key string) float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var count atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for range 4 * runtime.NumCPU() {
		running.Go(func() {
			for time.Since(began) < time.Second {
				req, _ := http.NewRequest(http.MethodGet, url, nil)
				req.Header.Set("Authorization", "Bearer "+key)
				res, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				count.Add(1)
			}
		})
	}
	running.Wait()
	return float64(count.Load()) / time.Since(began).Seconds()
}
