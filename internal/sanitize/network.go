package sanitize

import (
	"net"
	"net/netip"
	"strings"

	"snap/internal/engine"
)

// ipAddress replaces IP addresses with addresses of the private networks of IPv4 and IPv6 (RFC
// 1918, RFC 4193), which belong to nobody. A network becomes a network of the same size. Any other
// value becomes an IPv4 address.
func ipAddress(key []byte, _ ColumnRule, limit int) engine.Mask {
	from := newSource(key, "ip")
	return neverNull(func(v string) string {
		if v == "" {
			return ""
		}
		d := from.digest(v)
		bare, size, hasSize := strings.Cut(v, "/")
		a, err := netip.ParseAddr(bare)
		masked := netip.AddrFrom4([4]byte{10, d[0], d[1], d[2]})
		if err == nil && a.Is6() && !a.Is4In6() {
			masked = netip.AddrFrom16([16]byte(append([]byte{0xfd}, d[:15]...)))
		}
		if hasSize && err == nil {
			if p, err := netip.ParsePrefix(masked.String() + "/" + size); err == nil {
				if whole, err := netip.ParsePrefix(v); err == nil && whole.Masked().Addr() == whole.Addr() {
					p = p.Masked() // a network address has no host bits
				}
				return cut(p.String(), limit)
			}
		}
		return cut(masked.String(), limit)
	})
}

// macAddress replaces hardware addresses with locally administered ones (IEEE 802), which belong to
// no device. They are written with hyphens if the original is, and otherwise with colons.
func macAddress(key []byte, _ ColumnRule, limit int) engine.Mask {
	from := newSource(key, "mac")
	return neverNull(func(v string) string {
		if v == "" {
			return ""
		}
		d := from.digest(v)
		length := 6
		if m, err := net.ParseMAC(v); err == nil {
			length = len(m)
		}
		masked := net.HardwareAddr(d[:length])
		masked[0] = masked[0]&0xfc | 0x02
		out := masked.String()
		if strings.Contains(v, "-") {
			out = strings.ReplaceAll(out, ":", "-")
		}
		return cut(out, limit)
	})
}
