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
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// BenchmarkListOverHTTP measures how many first pages of 50 the service lists per second on
// loopback. In turns with that, it measures a handler that responds with as many bytes behind the
// same middleware, but checks no credential and reads no database. Client and server share the
// machine's cores.
func BenchmarkListOverHTTP(b *testing.B) {
	for _, db := range []string{"sqlite", "postgres"} {
		b.Run(db, func(b *testing.B) {
			o := cloudtest.Options{Config: unlimited}
			if db == "postgres" {
				o.DatabaseURL = servertest.Postgres(b)
			}
			benchmarkList(b, db, o)
		})
	}
}

// unlimited removes the rate limits of one credential and one address.
func unlimited(c *cloud.Config) {
	c.Limits.RequestsPerCredential, c.Limits.RequestsPerAddress = -1, -1
}

func benchmarkList(b *testing.B, db string, o cloudtest.Options) {
	c := cloudtest.Start(b, o)
	mia := c.As("mia@acme.test")
	for i := range 100 {
		c.Push(mia, "shop", fmt.Append(nil, "snapshot ", i))
	}
	key := c.Key("mia@acme.test")
	list := c.URL + api.MountAgent + "/snapshots"
	page := fetchPage(b, list, key)
	constant := httptest.NewServer(c.Service.Constant("/constant", page))
	defer constant.Close()
	var listed, answered float64
	for range rounds {
		listed += perSecond(b, list, key) / rounds
		answered += perSecond(b, constant.URL+"/constant", key) / rounds
	}
	cores := float64(runtime.NumCPU())
	fmt.Printf("\n%s: %.0f pages of 50 (%d bytes) per second and core over HTTP, %.2f of a constant's %.0f\n",
		db, listed/cores, len(page), listed/answered, answered/cores)
	for b.Loop() { // the lines are the result
	}
	b.ReportMetric(listed/answered, "of-constant")
	b.ReportMetric(listed/cores, "pages/s/core")
}

// Turns are short and many, so that other work of the machine affects all of them alike.
const (
	rounds = 20
	turn   = 150 * time.Millisecond
)

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

// perSecond sends requests for a turn from a few clients and returns how many
// were answered per second.
func perSecond(b *testing.B, url, key string) float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var count atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for range 4 * runtime.NumCPU() {
		running.Go(func() {
			for time.Since(began) < turn {
				req, _ := http.NewRequest(http.MethodGet, url, nil)
				req.Header.Set("Authorization", "Bearer "+key)
				res, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					b.Errorf("%s: status %d", url, res.StatusCode)
					return
				}
				count.Add(1)
			}
		})
	}
	running.Wait()
	return float64(count.Load()) / time.Since(began).Seconds()
}
