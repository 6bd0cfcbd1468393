package api

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"snap"
)

// Unreachable returns the error for a service at base that sent no response, with the reason.
func Unreachable(base string, cause error) error {
	why, hint := whyUnreachable(cause, proxyOf(base))
	return &snap.Error{
		Code:   snap.CodeUnreachable,
		Detail: fmt.Sprintf("cannot reach the cloud service at %s: %s", base, why),
		Hint:   hint,
		Cause:  cause,
	}
}

// whyUnreachable explains why no response came and what to do about it. proxy is the proxy that the
// request went through, or nil.
func whyUnreachable(err error, proxy *url.URL) (why, hint string) {
	var (
		timeout   net.Error
		dns       *net.DNSError
		op        *net.OpError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
	)
	hint = "check cloud.url and your network"
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it uses HTTP, not HTTPS", "check the port; if the service runs on this machine, use http:// in its URL"
	case errors.As(err, &authority):
		return "its certificate is signed by " + issuer(authority.Cert) + ", which this machine does not trust",
			"set cloud.ca_file, or SSL_CERT_FILE, to a file with that authority's certificate"
	case errors.As(err, &name):
		return "its certificate is for another host name", "check cloud.url; " + name.Error()
	case proxy != nil && errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return "the proxy " + proxy.Host + " cannot be reached",
			fmt.Sprintf("%s names that proxy: correct it, unset it, or add the service to NO_PROXY",
				proxyVariable(proxy))
	case errors.As(err, &dns):
		return "the host name " + dns.Name + " is unknown", hint
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it does not answer in time", hint + "; --debug shows which step takes so long"
	case strings.Contains(err.Error(), "connection refused"):
		return "nothing is listening there", hint
	case strings.Contains(err.Error(), "certificate"):
		return "its certificate is not trusted",
			"set cloud.ca_file, or SSL_CERT_FILE, to a file with the certificate of its authority"
	}
	return "it does not answer", hint
}

// issuer returns the name of the authority that signed a certificate.
func issuer(cert *x509.Certificate) string {
	if cert == nil {
		return "an unknown authority"
	}
	return fmt.Sprintf("%q", snap.CleanText(cmp.Or(cert.Issuer.CommonName, cert.Issuer.String())))
}

// proxyOf returns the proxy between this machine and the service at base, or nil.
func proxyOf(base string) *url.URL {
	u, err := url.Parse(base)
	if err != nil {
		return nil
	}
	proxy, _ := http.ProxyFromEnvironment(&http.Request{URL: u}) // nil after an error
	return proxy
}

// proxyVariable returns the name of the environment variable that names a proxy, or "an environment
// variable" if none is found.
func proxyVariable(proxy *url.URL) string {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if strings.Contains(os.Getenv(name), proxy.Host) {
			return name
		}
	}
	return "an environment variable"
}

// OnLoopback reports whether the service runs on this machine.
func (c *Client) OnLoopback() bool {
	u, err := url.Parse(c.base)
	return err == nil && snap.IsLoopback(u.Hostname())
}
