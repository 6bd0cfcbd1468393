package cloud

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"snap"
	"snap/internal/store"
)

// Mail is the SMTP server through which events are sent to e-mail addresses. Without a server, no
// webhook can send to an e-mail address.
type Mail struct {
	Server   string `yaml:"server"`   // host, or host:port
	Security string `yaml:"security"` // starttls, tls, or none for a server on this machine
	User     string `yaml:"user"`
	Password string `yaml:"password"`
	// PasswordFile is the path of a file that holds the password instead. The file is read for
	// every message, so that a changed password needs no restart.
	PasswordFile string `yaml:"password_file"`
	CAFile       string `yaml:"ca_file"` // PEM; empty means the authorities of the system
	From         string `yaml:"from"`
	// Domains are the mail domains to which every organization may send, in addition to the domains
	// of its own people.
	Domains []string `yaml:"domains"`
}

// The values of mail.security. The first is the default.
const (
	mailSTARTTLS = "starttls"
	mailTLS      = "tls"
	mailPlain    = "none"
)

// mailStep is the time limit of each of two steps: first connecting and signing in to the SMTP
// server, then handing it a message. Together they end within receiverTimeout.
const mailStep = receiverTimeout / 2

// check lists the mistakes in the settings of mail.
func (m Mail) check() (wrong []string) {
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if m.Server == "" {
		if m.User != "" || m.From != "" || len(m.Domains) > 0 {
			report("mail.server is missing")
		}
		return wrong
	}
	host, _, err := m.address()
	if err != nil {
		report("mail.server %q is not an address like smtp.example:587", m.Server)
	}
	if !plainAddress.MatchString(m.From) {
		report("mail.from %q is not an e-mail address", m.From)
	}
	if m.Password != "" && m.PasswordFile != "" {
		report("mail has both password and password_file")
	}
	if (m.User == "") != (m.Password == "" && m.PasswordFile == "") {
		report("mail needs both user and password, or neither")
	}
	switch m.Security {
	case "", mailSTARTTLS, mailTLS:
	case mailPlain:
		if !snap.IsLoopback(host) || m.User != "" {
			report("mail.security none is only for a server on this machine that needs no password")
		}
	default:
		report("mail.security must be starttls, tls or none, not %q", m.Security)
	}
	for _, d := range m.Domains {
		if !plainAddress.MatchString("x@" + d) {
			report("mail.domains: %q is not a domain", d)
		}
	}
	return wrong
}

// address returns the host and the port of the server.
func (m Mail) address() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(m.Server)
	if err != nil { // no port
		host = m.Server
		text = cmp.Or(map[string]string{mailTLS: "465", mailPlain: "25"}[m.Security], "587")
	}
	port, err = strconv.Atoi(text)
	if err != nil || host == "" || strings.ContainsAny(host, " /@") || port < 1 || port > 65535 {
		return "", 0, errors.New("not a host and a port")
	}
	return host, port, nil
}

// client returns a client of the server. The client sends nothing unencrypted, unless mail.security
// is none, which [Mail.check] allows only for a server on this machine.
func (m Mail) client() (*mail.Client, error) {
	host, port, err := m.address()
	if err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(m.From, "@")
	options := []mail.Option{mail.WithPort(port), mail.WithTimeout(mailStep), mail.WithHELO(domain)}
	settings := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if m.CAFile != "" {
		text, err := os.ReadFile(m.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read mail.ca_file: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("mail.ca_file %s contains no certificate", m.CAFile)
		}
	}
	options = append(options, mail.WithTLSConfig(settings))
	switch m.Security {
	case mailTLS:
		options = append(options, mail.WithSSL())
	case mailPlain:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if m.User != "" {
		password := m.Password
		if m.PasswordFile != "" {
			text, err := os.ReadFile(m.PasswordFile)
			if err != nil {
				return nil, fmt.Errorf("read mail.password_file: %w", err)
			}
			password = strings.TrimRight(string(text), "\r\n")
		}
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(m.User),
			mail.WithPassword(password))
	}
	return mail.NewClient(host, options...)
}

// tryMail signs in to the SMTP server and sends nothing.
func tryMail(ctx context.Context, m Mail) error {
	if m.Server == "" {
		return errors.New("a webhook sends to an e-mail address, but mail.server is not set")
	}
	c, err := m.client()
	if err != nil {
		return err
	}
	connection, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return err
	}
	return c.CloseWithSMTPClient(connection)
}

// The status of a message whose receiver did not answer, and of a mail for which a file of the
// service's mail settings cannot be used.
const (
	notReached  = "not reached"
	badSettings = "not sent: the service's mail settings have an error; ask its operator to correct them"
)

// send hands a message to the SMTP server.
func (m Mail) send(ctx context.Context, message *mail.Msg) (store.Outcome, error) {
	c, err := m.client()
	if err != nil {
		return store.Outcome{Status: badSettings}, err
	}
	failed := store.Outcome{Status: notReached}
	connection, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return failed, err
	}
	defer func() { _ = c.CloseWithSMTPClient(connection) }() // the server has accepted or refused the message
	err = c.SendWithSMTPClient(connection, message)
	if err == nil || message.IsDelivered() { // the server may close the connection after it accepted the mail
		return store.Outcome{Status: "answered 250", OK: true}, nil
	}
	if refused, ok := errors.AsType[*mail.SendError](err); ok && refused.ErrorCode() != 0 {
		failed.Status = "answered " + strconv.Itoa(refused.ErrorCode())
	}
	return failed, err
}
