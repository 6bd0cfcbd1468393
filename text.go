package snap

import (
	"net/netip"
	"strings"
)

// CleanText removes from untrusted text every character that could control the terminal or page
// that shows it: control characters, including those of the second block (C1), line and paragraph
// separators, and marks that change the direction of writing (AUTH A4). Bytes that are not UTF-8
// become U+FFFD.
func CleanText(text string) string {
	return strings.Map(func(r rune) rune {
		if controls(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

func controls(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r == 0x2028, r == 0x2029: // line and paragraph separator
		return true
	}
	return false
}

// IsLoopback reports whether a host without a port is this machine: localhost, or a loopback
// address.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
