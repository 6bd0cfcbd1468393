package webui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"snap"
)

const (
	defaultHost = "127.0.0.1"
	defaultPort = 8484
	portTries   = 20
)

// listen opens the address. "" means the default port on 127.0.0.1, or the next free one. An
// address other than loopback requires allowRemote (rule L1 in gate.go).
func listen(ctx context.Context, address string, allowRemote bool) (net.Listener, error) {
	var lc net.ListenConfig
	if address == "" {
		return listenNext(ctx, lc)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errNoAddress(address)
	}
	if !snap.IsLoopback(host) && !allowRemote {
		return nil, errRemote(address)
	}
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, errCannotListen(address, errors.Unwrap(err))
	}
	return ln, nil
}

func listenNext(ctx context.Context, lc net.ListenConfig) (net.Listener, error) {
	for port := defaultPort; port < defaultPort+portTries; port++ {
		ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(defaultHost, strconv.Itoa(port)))
		if err == nil {
			return ln, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	return nil, errPortsTaken(defaultPort, defaultPort+portTries-1)
}

// baseURL returns the URL of the web UI at a listener's address. If the listener accepts
// connections on all interfaces, baseURL uses the first of the configured host names or, if there
// is none, an address of this machine.
func baseURL(at net.Addr, hosts []string) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "http://" + at.String()
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		if host = ownAddress(ip.Is4()); len(hosts) > 0 {
			host = hosts[0]
		}
	}
	return "http://" + net.JoinHostPort(host, port)
}

// ownAddress returns an address at which other machines can reach this one, or 127.0.0.1 if there
// is none. It prefers IPv4. If ipv4Only is set, it never returns an IPv6 address.
func ownAddress(ipv4Only bool) string {
	own := defaultHost
	all, _ := net.InterfaceAddrs() // if they cannot be listed, the link works on this machine
	for _, a := range all {
		network, ok := a.(*net.IPNet)
		switch {
		case !ok || !network.IP.IsGlobalUnicast():
		case network.IP.To4() != nil:
			return network.IP.String()
		case !ipv4Only && own == defaultHost:
			own = network.IP.String()
		}
	}
	return own
}

// openBrowser starts the system's browser without waiting for it.
func openBrowser(link string) error {
	name, args := "xdg-open", []string{link}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", link}
	}
	cmd := exec.Command(name, args...) //nolint:noctx // the browser outlives this process
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	go func() { _ = cmd.Wait() }() // the browser's exit status does not matter
	return nil
}
