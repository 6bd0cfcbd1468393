package snap

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// MaxNetworks is how many networks a key may be limited to.
const MaxNetworks = 100

// ParseNetworks parses the networks that a key may be used from, such as 10.0.0.0/8 or
// 2001:db8::/32. A single address is a network with one address. IPv4 networks that are written as
// IPv6 (::ffff:10.0.0.0/104) become IPv4 networks. The result is sorted and has no duplicates.
// Every error has code invalid; an error about one entry names it.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		p, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	if len(all) > MaxNetworks {
		return nil, Invalid(fmt.Sprintf("a key may be limited to at most %d networks, not %d", MaxNetworks, len(all)),
			"combine neighboring networks into larger ones")
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return all, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return p, notANetwork(text, "use a network such as 10.0.0.0/8, or one address")
		}
		p = netip.PrefixFrom(ip, ip.BitLen())
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return p, notANetwork(text, "use an IPv4 network such as 10.0.0.0/8")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return p, notANetwork(text, fmt.Sprintf("an address is not a network; use %s for the whole network, or %s/%d",
			p.Masked(), p.Addr(), p.Addr().BitLen()))
	}
	return p, nil
}

func notANetwork(text, hint string) error {
	if len(text) > 60 {
		text = text[:60]
	}
	return Invalid(fmt.Sprintf("%q is not a network", CleanText(text)), hint)
}

// InNetworks reports whether an address is in one of the networks. If there are no networks, it
// returns true for every address. Otherwise it returns false for an invalid address.
func InNetworks(networks []netip.Prefix, ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return len(networks) == 0 || slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}
