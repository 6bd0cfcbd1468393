package cloud_test

import (
	"context"
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

// BenchmarkListOverHTTP measures how many first pages of 50 the service lists
// a second on loopback, in turns of one run; client and server share the
// machine's cores.
//
//	constant      a handler of the same server that answers as many bytes: the
//	              same middleware, router, log and metrics, but neither credential
//	              nor database
//	asked again   the same pages again and again, while nothing is committed: what
//	              polling clients and open pages ask for
//	first read    no answer is kept, every page is read from the database
//
// and the same while somebody commits 100 times a second: asked again, and first
// reads, each a page of its own, with the search for what is kept and without.
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

// unlimited lifts the rates that one credential and one address have.
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
	each := map[string]float64{}
	rate := func(name string, keepNothing, unique bool, url string) {
		c.Service.KeepNothing(keepNothing)
		each[name] += perSecond(b, url, key, unique) / rounds
	}
	for range rounds {
		rate("asked again", false, false, list)
		rate("constant", false, false, constant.URL+"/constant")
		rate("first read", true, false, list)
	}
	stop := commitOften(b, c)
	for range rounds {
		rate("first read, commits", false, true, list)
		rate("first read, commits, nothing kept", true, true, list)
	}
	for range rounds {
		rate("asked again, commits", false, false, list)
	}
	stop()
	cores := float64(runtime.NumCPU())
	fmt.Printf("\n%s: pages of 50 (%d bytes) over HTTP, a second for each core (at least 1000 on a quiet machine), of a constant's %.0f (at least 0.5)\n", db, len(page), each["constant"]/cores)
	for _, name := range []string{"asked again", "first read", "asked again, commits", "first read, commits", "first read, commits, nothing kept"} {
		fmt.Printf("%-36s%8.0f%8.2f\n", name, each[name]/cores, each[name]/each["constant"])
	}
	for b.Loop() { // the lines are the result
	}
	b.ReportMetric(each["asked again"]/each["constant"], "of-constant")
	b.ReportMetric(each["asked again"]/cores, "pages/s/core")
	b.ReportMetric(each["first read"]/each["constant"], "first-of-constant")
	b.ReportMetric(each["first read"]/cores, "first-pages/s/core")
}

// Turns are short and many, so that what else the machine does hits all alike.
const (
	rounds = 20
	turn   = 150 * time.Millisecond
)

// commitOften commits 100 times a second until stop is called.
func commitOften(b *testing.B, c *cloudtest.Cloud) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-tick.C
			if _, err := c.Store.Lease(b.Context(), "bench", "bench", time.Duration(n)*time.Millisecond); err != nil {
				b.Error(err)
			}
		}
	})
	return func() { cancel(); running.Wait() }
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

// perSecond sends requests for a turn from a few clients and returns how
// many were answered a second. Unique ones are kept under a key of their own, by
// what they accept.
func perSecond(b *testing.B, url, key string, unique bool) float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var count, asked atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for range 4 * runtime.NumCPU() {
		running.Go(func() {
			for time.Since(began) < turn {
				req, _ := http.NewRequest(http.MethodGet, url, nil)
				req.Header.Set("Authorization", "Bearer "+key)
				if unique {
					req.Header.Set("Accept", fmt.Sprint("application/json;n=", asked.Add(1)))
				}
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
