package transfer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"

	"snap"
)

// checkURL rejects a plain http URL, because the bytes and the permission in the URL would be sent
// unencrypted. It accepts such a URL if it leads to this machine or if Plain is set. If the service
// is remote, it also rejects addresses of this machine and link-local addresses.
func (o Options) checkURL(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &snap.Error{Code: snap.CodeInternal,
			Detail: "the service's address for the object store cannot be used",
			Hint:   "tell the service's operator"}
	}
	if o.Remote && isInternal(u.Hostname()) {
		return errInternal(u.Host)
	}
	if u.Scheme == "https" || o.Plain || snap.IsLoopback(u.Hostname()) {
		return nil
	}
	return snap.Usage(fmt.Sprintf("the service's object store at http://%s does not encrypt its connections", u.Host),
		"ask the service's operator to use https for the object store; if you trust the network, set "+
			"cloud.plain_storage: true, or SNAPCLI_CLOUD__PLAIN_STORAGE=true")
}

// isInternal reports whether a host is this machine or a link-local address. Link-local addresses
// include the metadata service of cloud machines, which holds credentials.
func isInternal(host string) bool {
	ip, err := netip.ParseAddr(host)
	if snap.IsLoopback(host) || err != nil { // this machine, or a name
		return snap.IsLoopback(host)
	}
	ip = ip.Unmap().WithZone("")
	return ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast()
}

func errInternal(host string) error {
	return snap.Usage(fmt.Sprintf("the service directs snapcli to an address of this machine or a link-local address, "+
		"%s; snapcli did not connect to it", host),
		"check cloud.url; if it is right, tell the service's operator that the object store's address is wrong")
}

// guardedDialer opens connections. If the service is remote, it rejects the addresses that
// isInternal reports. It checks the resolved address at the time of the connection.
type guardedDialer struct {
	direct  *net.Dialer
	remote  bool
	proxies *sync.Map // addresses of proxies, which the user chose and which are always allowed
}

// proxy returns the proxy for a request, and remembers that it is allowed.
func (d guardedDialer) proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if u != nil {
		d.proxies.Store(u.Hostname(), true)
	}
	return u, err
}

func (d guardedDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	if _, proxy := d.proxies.Load(host); !d.remote || proxy {
		return d.direct.DialContext(ctx, network, address)
	}
	guarded := *d.direct
	guarded.Control = func(_, resolved string, _ syscall.RawConn) error {
		ip, _, err := net.SplitHostPort(resolved)
		if err == nil && isInternal(ip) {
			return errInternal(address)
		}
		return err
	}
	return guarded.DialContext(ctx, network, address)
}
