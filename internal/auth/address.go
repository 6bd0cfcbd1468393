package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ConnectionAddress returns the address at the other end of the connection.
func ConnectionAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return network(host)
}

// ProxiedAddress returns a function that finds the client's address behind proxies: the last
// address in X-Forwarded-For that is not a trusted proxy. It uses the header only when the
// connection comes from a trusted proxy.
func ProxiedAddress(trusted []netip.Prefix) func(*http.Request) string {
	return func(r *http.Request) string {
		address := ConnectionAddress(r)
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; i >= 0 && isTrusted(address, trusted); i-- {
			hop := strings.TrimSpace(hops[i])
			if _, err := netip.ParseAddr(hop); err != nil {
				break
			}
			address = network(hop)
		}
		return address
	}
}

func isTrusted(address string, trusted []netip.Prefix) bool {
	ip, err := netip.ParseAddr(strings.TrimSuffix(address, "/64"))
	if err != nil {
		return false
	}
	for _, p := range trusted {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// network returns an address in the form in which limits count it. An IPv6 address counts as its
// /64, because one subscriber has all of it.
func network(host string) string {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() || ip.IsLoopback() {
		return ip.String()
	}
	prefix, _ := ip.Prefix(64)
	return prefix.String()
}

// Networks returns the networks of an address that [ConnectionAddress] returned: the site, which is
// an IPv6 /56 or the IPv4 address itself, and the network, which is a /48 or /24. Text that is not
// an address is returned unchanged.
func Networks(address string) (site, network string) {
	ip, err := netip.ParseAddr(strings.TrimSuffix(address, "/64"))
	if err != nil {
		return address, address
	}
	if ip.Is4() {
		return address, masked(ip, 24)
	}
	return masked(ip, 56), masked(ip, 48)
}

func masked(ip netip.Addr, bits int) string {
	prefix, err := ip.WithZone("").Prefix(bits)
	if err != nil {
		return ip.String()
	}
	return prefix.String()
}
