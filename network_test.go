package snap_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// TestParseNetworks: each network has one form, and the error for any other text names the text.
func TestParseNetworks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", " 192.0.2.7 ": "192.0.2.7/32", "2001:db8::/32": "2001:db8::/32", "::1": "::1/128",
		"::ffff:10.0.0.0/104": "10.0.0.0/8", "::ffff:192.0.2.7": "192.0.2.7/32", "0.0.0.0/0": "0.0.0.0/0",
	} {
		got, err := snap.ParseNetworks([]string{text, text})
		if err != nil || len(got) != 1 || got[0].String() != want {
			t.Errorf("%q is %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10.0.0.1/8", "10.0.0.0/33", "example.com", "fe80::1%eth0", "fe80::%eth0/64",
		"::ffff:0:0/90", "10.0.0.0-10.0.0.9", "10.0.0.0/08"} {
		if got, err := snap.ParseNetworks([]string{text}); snap.CodeOf(err) != snap.CodeInvalid ||
			!strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("10.0.%d.0/24", i))
	}
	if _, err := snap.ParseNetworks(many); snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("101 networks: %v", err)
	}
	if got, err := snap.ParseNetworks(many[:100]); err != nil || len(got) != 100 {
		t.Errorf("100 networks: %d, %v", len(got), err)
	}
}

// TestInNetworks: an address is in the networks that hold it, in each of its
// forms, and an unknown address is in none.
func TestInNetworks(t *testing.T) {
	t.Parallel()
	networks, err := snap.ParseNetworks([]string{"10.0.0.0/8", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.1": false, "2001:db8::7": true, "2001:db9::7": false,
		"::10.1.2.3": false,
	} {
		if got := snap.InNetworks(networks, netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if snap.InNetworks(networks, netip.Addr{}) || !snap.InNetworks(nil, netip.Addr{}) {
		t.Error("an unknown address must be allowed only where every address is")
	}
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
		ip, _ := netip.AddrFromSlice(bytes)
		bits := rapid.IntRange(0, 32).Draw(t, "bits")
		p := netip.PrefixFrom(ip, bits).Masked()
		mapped := netip.AddrFrom16(ip.As16())
		parsed, err := snap.ParseNetworks([]string{p.String()})
		if err != nil || !slices.Equal(parsed, []netip.Prefix{p}) || !snap.InNetworks(parsed, mapped) {
			t.Fatalf("%s in %s: %v, %v", mapped, p, parsed, err)
		}
	})
}
