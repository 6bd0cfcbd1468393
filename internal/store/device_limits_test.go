package store_test

import (
	"fmt"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// If too many logins wait, the oldest unopened login of the busiest part of the address space is
// dropped. A new login from the busiest part itself is refused.
func TestBusiestGivesUpItsOldestDeviceGrants(t *testing.T) {
	t.Parallel()
	limits := store.DeviceLimits{PerAddress: 4, PerSite: 6, PerNetwork: 8, Total: 12}
	for name, tc := range map[string]struct {
		before  []place // each adds a grant
		opened  int     // that many of the first are opened
		expired int     // that many of the first have expired
		next    place
		dropped []int // indexes of before
		refused bool
	}{
		"room":                 {times(3, a1), 0, 0, a1, nil, false},
		"one address is full":  {times(4, a1), 0, 0, a1, nil, true},
		"its site has room":    {times(4, a1), 0, 0, a2, nil, false},
		"the busiest address":  {append(times(4, a1), times(2, a2)...), 0, 0, a3, []int{0}, false},
		"as busy itself":       {append(times(3, a1), times(3, a2)...), 0, 0, a1, nil, true},
		"what is opened stays": {append(times(4, a1), times(2, a2)...), 3, 0, a3, []int{4}, false},
		"expired is not room":  {append(times(6, a1), times(2, a2)...), 0, 2, a3, []int{2}, false},
		"everything is opened": {append(times(3, a1), times(3, a2)...), 6, 0, a3, nil, true},
		"the network is full": {append(append(times(3, a1), times(3, a2)...), times(2, b1)...), 0, 0, b1, []int{0},
			false},
		"all are full, and one gives": {append(append(times(4, a1), times(4, b1)...), append(times(3, x1), y1)...), 0,
			0, y1, []int{0}, false},
		"all are full, by the oldest": {append(append(times(4, x1), times(4, y1)...), times(4, z1)...), 0,
			0, w1, []int{0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, store.Options{DataDir: t.TempDir()})
			add := func(i int, p place) error {
				w.clock.Advance(time.Millisecond)
				return w.AddDeviceGrant(w.ctx, store.DeviceGrant{
					UserCode: code(i), ClientID: "snapcli", Address: p.address, Site: p.site, Network: p.network,
					Expires: w.clock.Now().Add(10 * time.Minute),
				}, digest(code(i)), limits)
			}
			for i, p := range tc.before {
				if i > 0 && i == tc.expired {
					w.clock.Advance(10 * time.Minute)
				}
				w.ok(add(i, p))
			}
			for i := range tc.opened {
				w.ok(w.OpenDevice(w.ctx, code(i)))
			}
			err := add(len(tc.before), tc.next)
			if refused := snap.CodeOf(err) == snap.CodeRateLimited; refused != tc.refused || !refused && err != nil {
				t.Fatalf("the next one: %v, want refused %v", err, tc.refused)
			}
			for i := tc.expired; i < len(tc.before); i++ {
				_, err := w.PendingDevice(w.ctx, code(i))
				want := false
				for _, d := range tc.dropped {
					want = want || d == i
				}
				if gone := snap.CodeOf(err) == snap.CodeNotFound; gone != want {
					t.Errorf("grant %d is gone: %v, want %v", i, gone, want)
				}
			}
		})
	}
}

// place is where a login comes from.
type place struct{ address, site, network string }

var (
	a1 = place{"2001:db8:0:1::/64", "2001:db8::/56", "2001:db8::/48"}
	a2 = place{"2001:db8:0:2::/64", "2001:db8::/56", "2001:db8::/48"}
	a3 = place{"2001:db8:0:3::/64", "2001:db8::/56", "2001:db8::/48"}
	b1 = place{"2001:db8:0:101::/64", "2001:db8:0:100::/56", "2001:db8::/48"}
	x1 = place{"192.0.2.1", "192.0.2.1", "192.0.2.0/24"}
	y1 = place{"198.51.100.1", "198.51.100.1", "198.51.100.0/24"}
	z1 = place{"203.0.113.1", "203.0.113.1", "203.0.113.0/24"}
	w1 = place{"10.0.0.1", "10.0.0.1", "10.0.0.0/24"}
)

func times(n int, p place) (all []place) {
	for range n {
		all = append(all, p)
	}
	return all
}

func code(i int) string { return fmt.Sprintf("CODE%04d", i) }
