package store_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes property tests short unless -rapid.checks asks for more: each
// history is compared through many statements on two databases.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	if !asked["rapid.checks"] {
		flag.Set("rapid.checks", "4")
	}
	os.Exit(m.Run())
}
