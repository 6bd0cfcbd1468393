package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"snap"
)

// ProxiedAddress returns a function that finds the client's address behind proxies, in the form
// that rate limits use: an IPv6 address becomes its /64, because one subscriber usually has the
// whole /64.
func ProxiedAddress(trusted []netip.Prefix) func(*http.Request) string {
	return func(r *http.Request) string {
		address, _ := client(r, trusted) // the proxy's address if the client is unknown
		if !address.IsValid() {
			return r.RemoteAddr
		}
		return network(address)
	}
}

// ClientAddress returns a function that finds the client's exact address behind proxies. The result
// is invalid if a trusted proxy forwarded something that is not an address, because the client is
// then unknown.
func ClientAddress(trusted []netip.Prefix) func(*http.Request) netip.Addr {
	return func(r *http.Request) netip.Addr {
		address, known := client(r, trusted)
		if !known {
			return netip.Addr{}
		}
		return address
	}
}

// client returns the client's address: the last address in X-Forwarded-For that is not a trusted
// proxy. If the connection does not come from a trusted proxy, client returns the connection's
// address, because anyone can write any address into the header. If an address in the chain cannot
// be read, known is false and address is that of the proxy that wrote it.
func client(r *http.Request, trusted []netip.Prefix) (address netip.Addr, known bool) {
	address = connection(r)
	var hops []string
	for _, header := range r.Header.Values("X-Forwarded-For") {
		hops = append(hops, strings.Split(header, ",")...)
	}
	for i := len(hops) - 1; i >= 0 && isTrusted(address, trusted); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			return address, false
		}
		address = plain(hop)
	}
	return address, address.IsValid()
}

// connection returns the address at the other end of the connection, or an invalid address.
func connection(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	ip, _ := netip.ParseAddr(host) // invalid after an error
	return plain(ip)
}

// plain converts an IPv4 address in IPv6 form to IPv4, and removes an address's zone.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

func isTrusted(ip netip.Addr, trusted []netip.Prefix) bool {
	return ip.IsValid() && len(trusted) > 0 && snap.InNetworks(trusted, ip)
}

// network returns an address in the form that rate limits use.
func network(ip netip.Addr) string {
	if ip.Is4() || ip.IsLoopback() {
		return ip.String()
	}
	prefix, _ := ip.Prefix(64)
	return prefix.String()
}

// Networks returns the networks of an address that [ProxiedAddress] found: the site, which is an
// IPv6 /56 or the IPv4 address itself, and the network, which is a /48 or /24. Text that is not an
// address is returned unchanged.
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
	prefix, _ := ip.WithZone("").Prefix(bits) // fails only if the address has fewer bits
	return prefix.String()
}
