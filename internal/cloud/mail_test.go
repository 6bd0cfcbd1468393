package cloud_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

const mailPassword = "the-password-of-the-mail-server"

// postOffice is an SMTP server that keeps the mails that it accepts.
type postOffice struct {
	address, caFile string
	certificates    []tls.Certificate

	mu       sync.Mutex
	password string
	refuse   error // answer to recipients
	hangsUp  bool  // closes the connection after each mail
	got      []delivered
	logins   []string // passwords that were tried
}

// delivered is a mail that a post office accepted.
type delivered struct {
	from, to string
	text     string
}

// newPostOffice starts an SMTP server that offers STARTTLS, speaks TLS from the start, or has no
// TLS.
func newPostOffice(t *testing.T, security string) *postOffice {
	t.Helper()
	p := &postOffice{password: mailPassword, caFile: filepath.Join(t.TempDir(), "ca.pem")}
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	p.certificates = certified.TLS.Certificates
	must(t, os.WriteFile(p.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: certified.Certificate().Raw}), 0o600))
	p.listen(t, security)
	return p
}

func (p *postOffice) listen(t *testing.T, security string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	p.address = l.Addr().String()
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &mailSession{office: p, conn: c}, nil
	}))
	s.Domain, s.ErrorLog, s.AllowInsecureAuth = "mail.test", log.New(io.Discard, "", 0), security == ""
	switch settings := (&tls.Config{Certificates: p.certificates, MinVersion: tls.VersionTLS12}); security {
	case "tls":
		l = tls.NewListener(l, settings)
	case "starttls":
		s.TLSConfig = settings
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Close()
		serving.Wait()
	})
}

// settings returns the service's configuration for the server.
func (p *postOffice) settings(security string) cloud.Mail {
	return cloud.Mail{Server: p.address, Security: security, User: "snapcloud", Password: mailPassword,
		CAFile: p.caFile, From: "snapcloud@mail.test"}
}

func (p *postOffice) mails() []delivered {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func (p *postOffice) set(change func(*postOffice)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// mailSession is a connection to a post office.
type mailSession struct {
	office *postOffice
	conn   *smtp.Conn
	mail   delivered
	in     bool
}

func (s *mailSession) Logout() error            { return nil }
func (s *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

// Reset is called after the response to a mail, too.
func (s *mailSession) Reset() {
	s.office.mu.Lock()
	defer s.office.mu.Unlock()
	if s.office.hangsUp && s.mail.text != "" {
		s.conn.Conn().Close()
	}
	s.mail = delivered{}
}

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.office.mu.Lock()
		defer s.office.mu.Unlock()
		s.office.logins = append(s.office.logins, password)
		if user != "snapcloud" || password != s.office.password {
			return smtp.ErrAuthFailed
		}
		s.in = true
		return nil
	}), nil
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.in {
		return smtp.ErrAuthRequired
	}
	s.mail.from = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.office.mu.Lock()
	defer s.office.mu.Unlock()
	s.mail.to += to
	return s.office.refuse
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.mail.text = string(text)
	s.office.mu.Lock()
	defer s.office.mu.Unlock()
	s.office.got = append(s.office.got, s.mail)
	return err
}

// withMail starts a service that sends mail, with a clock that the test moves.
func withMail(t *testing.T, m cloud.Mail) (*cloudtest.Cloud, *clocktest.Clock) {
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return cloudtest.Start(t, cloudtest.Options{Clock: clock, Config: func(c *cloud.Config) {
		c.Mail = m
		must(t, c.Check())
	}}), clock
}

// Events arrive as mails over STARTTLS and over TLS, after signing in. No header has a name that the
// actor chose, and links in names are broken apart.
func TestMail(t *testing.T) {
	t.Parallel()
	for _, security := range []string{"starttls", "tls"} {
		t.Run(security, func(t *testing.T) {
			t.Parallel()
			ctx, p := t.Context(), newPostOffice(t, security)
			c, _ := withMail(t, p.settings(security))
			alice := c.As("alice@acme.test")
			hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: "mailto:Ops@ACME.test", Events: pushed})
			must(t, err)
			if hook.URL != "mailto:Ops@acme.test" || hook.Format != "mail" || hook.Secret != "" {
				t.Errorf("%+v", hook)
			}
			c.Push(alice, "shop Www.evil.test", []byte("x"))
			if n, err := c.Service.Deliver(ctx); err != nil || n != 1 {
				t.Fatalf("delivered %d, %v", n, err)
			}
			got := p.mails()
			if len(got) != 1 || got[0].from != "snapcloud@mail.test" || got[0].to != "Ops@acme.test" {
				t.Fatalf("%+v", got)
			}
			header, text, _ := strings.Cut(got[0].text, "\r\n\r\n")
			if strings.Contains(header, "shop") || strings.Contains(header, "alice") ||
				!strings.Contains(header, "Subject: snapcloud: a snapshot was pushed\r\n") ||
				!strings.Contains(header, "Auto-Submitted: auto-generated\r\n") {
				t.Errorf("the header is %s", header)
			}
			body, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(text)))
			if must(t, err); !strings.Contains(string(body), "alice@acme.\u200btest pushed") ||
				!strings.Contains(string(body), "shop Www.\u200bevil.\u200btest") ||
				!strings.Contains(string(body), "Organization: acme") {
				t.Errorf("the body is %s", body)
			}
			result, err := alice.TestWebhook(ctx, hook.ID)
			if err != nil || !result.OK || result.Status != "answered 250" || len(p.mails()) != 2 {
				t.Errorf("test: %+v, %v", result, err)
			}
			if _, err := alice.RotateWebhook(ctx, hook.ID, api.RotateRequest{}); snap.CodeOf(err) != snap.CodeInvalid {
				t.Errorf("rotate: %v", err)
			}
		})
	}
}

// Mail goes only to domains of the organization and of the service, and an address cannot add
// headers or recipients.
func TestMailAddresses(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPostOffice(t, "starttls")
	m := p.settings("starttls")
	m.Domains = []string{"Pager.example"}
	c, _ := withMail(t, m)
	alice := c.As("alice@acme.test")
	for address, allowed := range map[string]bool{
		"ops@acme.test": true, "x+y@pager.example": true, "ops@globex.test": false, "ops@evil.test": false,
		"ops@sub.acme.test": false, "acme.test": false, "@acme.test": false, "ops@acme.test?bcc=x@evil.test": false,
		"ops@acme.test,x@evil.test": false, "ops@acme.test\r\nBcc: x@evil.test": false,
		"ops%0d%0a@acme.test": false, `"ops\r\n"@acme.test`: false, "<ops@acme.test>": false,
		"x@evil.test@acme.test": false,
		"ops@acme.test ":        false, "": false, "öps@acme.test": false,
	} {
		_, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: "mailto:" + address, Events: pushed})
		if allowed != (err == nil) || err != nil && snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, r := range []api.WebhookRequest{{URL: "https://hooks.example/x", Format: "mail"},
		{URL: "mailto:ops@acme.test", Format: "slack"}} {
		if _, err := alice.AddWebhook(ctx, r); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := c.As("mia@acme.test").AddWebhook(ctx, api.WebhookRequest{URL: "mailto:ops@acme.test"}); snap.CodeOf(
		err) != snap.CodeForbidden {
		t.Errorf("a member: %v", err)
	}
	without := cloudtest.Start(t, cloudtest.Options{}).As("alice@acme.test")
	if _, err := without.AddWebhook(ctx, api.WebhookRequest{URL: "mailto:ops@acme.test"}); snap.CodeOf(err) !=
		snap.CodeInvalid {
		t.Errorf("without a server: %v", err)
	}
}

// Mails wait, and none is lost, while the password file is missing, or the server refuses the
// password or the address. The service starts without the file, and `snapcloud check` warns.
func TestMailServerIsDown(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPostOffice(t, "starttls")
	m := p.settings("starttls")
	m.Password, m.PasswordFile = "", filepath.Join(t.TempDir(), "password")
	c, clock := withMail(t, m)
	alice := c.As("alice@acme.test")
	hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: "mailto:ops@acme.test", Events: pushed})
	must(t, err)
	c.Push(alice, "shop", []byte("x"))
	attempt := func(want string) {
		t.Helper()
		if n, err := c.Service.Deliver(ctx); err != nil || n != 1 {
			t.Fatalf("tried %d, %v", n, err)
		}
		list, err := alice.Deliveries(ctx, hook.ID)
		if err != nil || len(list) != 1 || list[0].Status != want {
			t.Errorf("%+v, %v; want %s", list, err, want)
		}
		clock.Advance(24 * time.Hour)
	}
	warns := func(want bool) {
		t.Helper()
		for _, v := range cloud.Verdicts(ctx, c.Config) {
			if v.What == "mail" && (v.Err != nil) != want || v.Err != nil && !v.Warning {
				t.Errorf("check says %+v", v)
			}
		}
	}
	attempt("not sent: the service's mail settings have an error; ask its operator to correct them") // no password yet
	warns(true)
	for file, cause := range map[string]string{"missing.pem": "no such file", "empty.pem": "contains no certificate"} {
		broken := c.Config
		broken.Mail.CAFile = filepath.Join(filepath.Dir(m.PasswordFile), file)
		if file == "empty.pem" {
			must(t, os.WriteFile(broken.Mail.CAFile, nil, 0o600))
		}
		if said := fmt.Sprint(cloud.Verdicts(ctx, broken)); !strings.Contains(said, broken.Mail.CAFile) ||
			!strings.Contains(said, cause) {
			t.Errorf("check with a bad ca_file says %s", said)
		}
	}
	without := c.Config
	without.Mail = cloud.Mail{}
	if said := fmt.Sprint(cloud.Verdicts(ctx, without)); !strings.Contains(said, "mail.server is not set") {
		t.Errorf("check without a server says %s", said)
	}
	must(t, os.WriteFile(m.PasswordFile, []byte("wrong\n"), 0o600))
	attempt("not reached")
	must(t, os.WriteFile(m.PasswordFile, []byte(mailPassword+"\n"), 0o600))
	warns(false)
	p.set(func(p *postOffice) { p.refuse = &smtp.SMTPError{Code: 550, Message: "no such mailbox"} })
	attempt("answered 550")
	p.set(func(p *postOffice) { p.refuse = errors.New("a full mailbox") })
	attempt("answered 451")
	p.set(func(p *postOffice) { p.refuse = nil })
	attempt("answered 250")
	if got := p.mails(); len(got) != 1 {
		t.Errorf("%d mails", len(got))
	}
	if n, err := c.Service.Deliver(ctx); err != nil || n != 0 {
		t.Errorf("sent again: %d, %v", n, err)
	}
}

// A mail that the server accepted is sent once, even if the server then closes the connection.
func TestMailServerThatHangsUp(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPostOffice(t, "starttls")
	p.set(func(p *postOffice) { p.hangsUp = true })
	c, clock := withMail(t, p.settings("starttls"))
	alice := c.As("alice@acme.test")
	hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: "mailto:ops@acme.test", Events: pushed})
	must(t, err)
	c.Push(alice, "shop", []byte("x"))
	for _, want := range []int{1, 0} {
		if n, err := c.Service.Deliver(ctx); err != nil || n != want {
			t.Errorf("tried %d, %v; want %d", n, err, want)
		}
		clock.Advance(24 * time.Hour)
	}
	list, err := alice.Deliveries(ctx, hook.ID)
	if err != nil || len(list) != 1 || list[0].Status != "answered 250" || len(p.mails()) != 1 {
		t.Errorf("%+v, %v; %d mails", list, err, len(p.mails()))
	}
}

// A mail that is sent again has the same Message-ID, so that mail programs show it once.
func TestMailIsRecognizedWhenSentAgain(t *testing.T) {
	t.Parallel()
	ctx, p := t.Context(), newPostOffice(t, "starttls")
	c, clock := withMail(t, p.settings("starttls"))
	alice := c.As("alice@acme.test")
	hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: "mailto:ops@acme.test", Events: pushed})
	must(t, err)
	since := clock.Now()
	c.Push(alice, "shop", []byte("x"))
	for range 2 {
		_, err = c.Service.Deliver(ctx)
		must(t, err)
		_, err = alice.ReplayWebhook(ctx, hook.ID, api.ReplayRequest{Since: &since, All: true})
		must(t, err)
	}
	var ids []string
	for _, m := range p.mails() {
		parsed, err := mail.ReadMessage(strings.NewReader(m.text))
		must(t, err)
		ids = append(ids, parsed.Header.Get("Message-Id"))
	}
	if len(ids) != 2 || ids[0] != ids[1] || !strings.HasPrefix(ids[0], "<msg_") {
		t.Errorf("%q", ids)
	}
}

// The password is never sent to a server that offers no TLS or has another certificate. If a server
// never answers, the attempt ends.
func TestMailNeedsTheRightServer(t *testing.T) {
	t.Parallel()
	plain, other := newPostOffice(t, ""), newPostOffice(t, "starttls")
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	stranger := other.settings("starttls")
	stranger.CAFile = ""
	mute := other.settings("starttls")
	mute.Server = silent.Addr().String()
	away := other.settings("starttls")
	away.Server = "127.0.0.1:1"
	for name, m := range map[string]cloud.Mail{"away": away, "no TLS": plain.settings("starttls"),
		"another certificate": stranger, "silent": mute, "TLS from the start": other.settings("tls")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := withMail(t, m)
			alice := c.As("alice@acme.test")
			hook, err := alice.AddWebhook(t.Context(), api.WebhookRequest{URL: "mailto:ops@acme.test"})
			must(t, err)
			result, err := alice.TestWebhook(t.Context(), hook.ID)
			if err != nil || result.OK || result.Status != "not reached" {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	t.Cleanup(func() {
		if len(plain.logins)+len(other.logins) > 0 {
			t.Error("the password was sent")
		}
	})
}

// Mistakes in the settings of mail are found before the service starts.
func TestMailSettings(t *testing.T) {
	t.Parallel()
	good := cloud.Mail{Server: "smtp.example", User: "u", Password: "p", From: "snapcloud@example.com"}
	for name, change := range map[string]func(*cloud.Mail){
		"no server":                func(m *cloud.Mail) { m.Server = "" },
		"a port":                   func(m *cloud.Mail) { m.Server = "smtp.example:x" },
		"a URL":                    func(m *cloud.Mail) { m.Server = "smtp://smtp.example" },
		"a name in from":           func(m *cloud.Mail) { m.From = "Snap <snapcloud@example.com>" },
		"no from":                  func(m *cloud.Mail) { m.From = "" },
		"a user without password":  func(m *cloud.Mail) { m.Password = "" },
		"two passwords":            func(m *cloud.Mail) { m.PasswordFile = "/x" },
		"security":                 func(m *cloud.Mail) { m.Security = "ssl" },
		"no security elsewhere":    func(m *cloud.Mail) { m.Security, m.User, m.Password = "none", "", "" },
		"no security for password": func(m *cloud.Mail) { m.Security, m.Server = "none", "127.0.0.1:25" },
		"a domain":                 func(m *cloud.Mail) { m.Domains = []string{"*"} },
	} {
		m := good
		change(&m)
		if err := (cloud.Config{PublicURL: "http://x", Listen: "x:1", Mail: m}).Check(); err == nil ||
			!strings.Contains(err.Error(), "mail") {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "snapcloud.yaml")
	must(t, os.WriteFile(path, []byte("mail: {server: 'smtp.example:587', from: a@b.example, user: u}\n"), 0o600))
	c, err := cloud.LoadConfig(path, []string{"SNAPCLOUD_MAIL__PASSWORD=from the environment"})
	if err != nil || c.Mail.Password != "from the environment" {
		t.Errorf("%+v, %v", c.Mail, err)
	}
}
