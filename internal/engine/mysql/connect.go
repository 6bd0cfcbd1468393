package mysql

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"snap"
)

// encryption defines how a connection is encrypted and how the server is verified.
type encryption struct {
	mode          string // see [tlsModes]; "" is the default
	ca, cert, key string // PEM files
}

// The modes of encryption.
const (
	tlsVerify    = "true"        // the server's certificate must be valid for its host
	tlsVerifyCA  = "verify-ca"   // the certificate must be valid, but its host is not checked
	tlsAny       = "skip-verify" // encrypted, but any certificate is accepted
	tlsPreferred = "preferred"   // encrypted if the server supports it
	tlsOff       = "false"
)

// tlsModes returns the values of the parameters tls and ssl-mode, in lower case, with their modes.
func tlsModes() map[string]string {
	return map[string]string{"true": tlsVerify, "verify_identity": tlsVerify, "verify-ca": tlsVerifyCA,
		"verify_ca": tlsVerifyCA, "skip-verify": tlsAny, "required": tlsAny, "preferred": tlsPreferred,
		"false": tlsOff, "disabled": tlsOff}
}

// readParameters reads the parameters of a URL. It refuses unknown parameters, so that a misspelled
// one does not leave the connection unencrypted.
func (d *database) readParameters(q url.Values) error {
	names := map[string]*string{"socket": &d.socket, "tls": &d.tls.mode, "ssl-mode": &d.tls.mode, "tls-ca": &d.tls.ca,
		"ssl-ca": &d.tls.ca, "tls-cert": &d.tls.cert, "ssl-cert": &d.tls.cert, "tls-key": &d.tls.key,
		"ssl-key": &d.tls.key}
	for name, values := range q {
		into, ok := names[name]
		if !ok {
			return snap.Usage(fmt.Sprintf("the MySQL URL has an unknown parameter %q", name),
				"the parameters are socket, tls, tls-ca, tls-cert and tls-key")
		}
		*into = values[len(values)-1]
	}
	return d.tls.check()
}

// check replaces the mode's name, from the URL or the option file, with the mode. It returns an
// error for an unknown name. If there is a certificate or key but no name, the mode is tlsVerify.
func (e *encryption) check() error {
	if e.mode == "" {
		if e.ca+e.cert+e.key != "" {
			e.mode = tlsVerify
		}
		return nil
	}
	mode, ok := tlsModes()[strings.ToLower(e.mode)]
	if !ok {
		return snap.Usage(fmt.Sprintf("the MySQL URL has an unknown value for tls: %q", e.mode),
			"use true, verify-ca, skip-verify, preferred or false")
	}
	e.mode = mode
	return nil
}

// config returns the TLS settings, or nil if TLS is off or the driver's own settings apply.
func (e encryption) config(host string) (*tls.Config, error) {
	if e.mode == "" || e.mode == tlsOff || e.mode == tlsPreferred {
		return nil, nil //nolint:nilnil // no TLS, or the driver's own settings
	}
	c := &tls.Config{ServerName: host,
		InsecureSkipVerify: e.mode != tlsVerify} //nolint:gosec // the user asked for it, or verifyChain checks
	if e.ca != "" {
		pem, err := os.ReadFile(e.ca)
		if err != nil {
			return nil, errUnreadable(e.ca, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errUnreadable(e.ca, nil)
		}
	}
	if e.cert != "" || e.key != "" {
		pair, err := tls.LoadX509KeyPair(e.cert, e.key)
		if err != nil {
			return nil, errUnreadable(cmp.Or(e.cert, "tls-cert")+" and "+cmp.Or(e.key, "tls-key"), err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if e.mode == tlsVerifyCA {
		c.VerifyConnection = func(s tls.ConnectionState) error { return verifyChain(s, c.RootCAs) }
	}
	return c, nil
}

func errUnreadable(path string, err error) error {
	return &snap.Error{Code: snap.CodeUsage, Detail: "there is no usable PEM certificate or key in " + path,
		Hint: "check tls-ca, tls-cert and tls-key in the URL, or ssl-ca, ssl-cert and ssl-key in ~/.my.cnf", Cause: err}
}

// verifyChain verifies the server's certificate without checking the host that it names.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) error {
	intermediates := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
	return err
}

// If a URL has no password, fromOptionFile completes it with values from the group [client] of an
// option file, as MySQL's own programs do. A file that other users can write, or that is for a user
// other than the one in the URL, is ignored.
func (d *database) fromOptionFile(path string, hostGiven bool) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return nil //nolint:nilerr // no option file to read
	}
	options := clientOptions(path)
	if d.user != "" && options["user"] != "" && d.user != options["user"] {
		return nil
	}
	d.user, d.password = cmp.Or(d.user, options["user"]), cmp.Or(d.password, options["password"])
	if !hostGiven && d.socket == "" {
		d.socket = options["socket"]
		d.host, d.port = cmp.Or(options["host"], d.host), cmp.Or(options["port"], d.port)
	}
	if d.tls == (encryption{}) {
		d.tls = encryption{options["ssl-mode"], options["ssl-ca"], options["ssl-cert"], options["ssl-key"]}
	}
	if d.tls.check() != nil { // the mode is from the file, because a mode in the URL was checked before
		return snap.Usage(fmt.Sprintf("%s has an unknown value for ssl-mode: %q", path, d.tls.mode),
			"use VERIFY_IDENTITY, VERIFY_CA, REQUIRED, PREFERRED or DISABLED")
	}
	return nil
}

// clientOptions reads the group [client]. Option names may contain underscores instead of hyphens.
func clientOptions(path string) map[string]string {
	options := map[string]string{}
	file, err := os.Open(path)
	if err != nil {
		return options
	}
	defer file.Close()
	group := ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			group = strings.Trim(line, "[] ")
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.ReplaceAll(strings.TrimSpace(name), "_", "-")
		if ok && group == "client" {
			options[name] = optionValue(value)
		}
	}
	return options
}

// optionValue removes the quotes around a value or the comment after it, and replaces its escapes.
func optionValue(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > 1 && (text[0] == '"' || text[0] == '\'') {
		if end := strings.LastIndexByte(text, text[0]); end > 0 {
			text = text[1:end]
		}
	} else if at := strings.Index(text, " #"); at >= 0 {
		text = strings.TrimSpace(text[:at])
	}
	return strings.NewReplacer(`\\`, `\`, `\s`, " ", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\b`, "\b").Replace(text)
}

// optionFile returns the user's option file, or "".
func optionFile() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".my.cnf")
}
