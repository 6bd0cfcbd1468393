package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"snap/api"
	"snap/internal/cloudtest"
)

// BenchmarkStart runs small commands as processes, by turns with a Go program
// that only prints a line, and tells how many times as long they take; how long
// a listing takes against that program and one round trip together; and against
// the least that could list, a program that does nothing but ask and copy the
// answer. Medians, of the time that passed and of the processor's.
func BenchmarkStart(b *testing.B) {
	program, hello, asking := buildReleased(b, "../../cmd/snapcli"), buildReleased(b, source(b, helloSource)), buildReleased(b, source(b, askSource))
	c := cloudtest.Start(b, cloudtest.Options{})
	key := c.Key("mia@acme.test")
	c.Push(c.Client(key), "shop", []byte("a snapshot"))
	env := append(os.Environ(), "SNAPCLI_CLOUD__URL="+c.URL, apiKeyEnv+"="+key, "SNAPCLI_CONFIG_DIR="+b.TempDir(), "SNAPCLI_DATA_DIR="+b.TempDir())

	const line, ask, trip = "a program that prints a line", "a program that asks", "a round trip"
	passed, worked := map[string][]time.Duration{}, map[string][]time.Duration{}
	measure := func(name string, argv ...string) {
		cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
		cmd.Env = env
		began := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		passed[name] = append(passed[name], time.Since(began))
		worked[name] = append(worked[name], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	for range 200 {
		measure(line, hello)
		measure(ask, asking, c.URL+api.MountAgent+"/snapshots", key)
		for _, args := range []string{"version", "--help", "version --json", "cloud snapshots"} {
			measure(args, append([]string{program}, strings.Fields(args)...)...)
		}
		passed[trip] = append(passed[trip], roundTrip(b, c.URL+api.MountAgent+"/snapshots", key))
	}

	fmt.Printf("\n%-30s%10s%10s%12s%12s\n", "median of 200", "ms", "times", "cpu ms", "times")
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		fmt.Printf("%-30s%10.2f%10.2f%12.2f%12.2f\n", name, milliseconds(passed[name]), milliseconds(passed[name])/milliseconds(passed[line]),
			milliseconds(worked[name]), milliseconds(worked[name])/milliseconds(worked[line]))
	}
	for b.Loop() { // the lines are the result
	}
	b.ReportMetric(milliseconds(passed["version"])/milliseconds(passed[line]), "version-of-line")
	b.ReportMetric(milliseconds(passed["--help"])/milliseconds(passed[line]), "help-of-line")
	b.ReportMetric(milliseconds(passed["cloud snapshots"])/(milliseconds(passed[line])+milliseconds(passed[trip])), "listing-of-line-and-trip")
	b.ReportMetric(milliseconds(passed["cloud snapshots"])/milliseconds(passed[ask]), "listing-of-asking")
}

const helloSource = `package main

import "fmt"

func main() { fmt.Println("hello") }
`

const askSource = `package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	req, err := http.NewRequest("GET", os.Args[1], nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+os.Args[2])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	io.Copy(os.Stdout, res.Body)
}
`

// source writes a program's only file and returns its path.
func source(b *testing.B, text string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// roundTrip fetches a page over a connection of its own.
func roundTrip(b *testing.B, url, key string) time.Duration {
	b.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("status %d, %v", res.StatusCode, err)
	}
	return time.Since(began)
}

// milliseconds is the median, 0 of none.
func milliseconds(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return float64(all[len(all)/2]) / float64(time.Millisecond)
}
