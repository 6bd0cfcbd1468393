package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"snap"
	"snap/api"
	"snap/internal/store"
)

// mailFormat is the format of webhooks that are e-mail addresses, and mailScheme is the scheme of
// their URLs.
const (
	mailFormat = "mail"
	mailScheme = "mailto:"
)

// plainAddress matches an e-mail address without quotes, comments, percent signs or a source route.
// A mailto URL with such an address has no parameters.
var plainAddress = regexp.MustCompile(`^[A-Za-z0-9._+=~'-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// mailAddress returns the address of a webhook's URL. ok is false unless the URL begins with
// mailto:.
func mailAddress(raw string) (address string, ok bool) {
	scheme, address, _ := strings.Cut(raw, ":")
	return address, strings.EqualFold(scheme+":", mailScheme)
}

func isMail(raw string) bool {
	_, ok := mailAddress(raw)
	return ok
}

// checkAddress returns an error unless the address is at a domain of the organization's own people
// or at one of mail.domains. An organization therefore cannot send unwanted mail to strangers.
func (c Config) checkAddress(slug, address string) error {
	if c.Mail.Server == "" {
		return snap.Invalid("this service sends no mail", "ask the service's operator to configure an SMTP server")
	}
	if !plainAddress.MatchString(address) {
		return snap.Invalid("the address of a mail must have the form mailto:name@example.com, without parameters", "")
	}
	allowed := c.mailDomains(slug)
	_, domain, _ := strings.Cut(address, "@")
	if slices.Contains(allowed, strings.ToLower(domain)) {
		return nil
	}
	return snap.Invalid("mail is sent only to addresses at a domain of the organization: "+
		cmp.Or(strings.Join(allowed, ", "), "none is configured"),
		"ask the service's operator to add other domains to mail.domains")
}

// mailDomains returns the domains of an organization's people, and those of mail.domains.
func (c Config) mailDomains(slug string) []string {
	domains := slices.Clone(c.Mail.Domains)
	for _, o := range c.Organizations {
		if o.Slug != slug {
			continue
		}
		domains = append(domains, o.SignIn.Domains...)
		for _, u := range o.Users {
			if _, domain, found := strings.Cut(u.Email, "@"); found {
				domains = append(domains, domain)
			}
		}
	}
	for i, d := range domains {
		domains[i] = strings.ToLower(d)
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// mailEvent sends an event to an e-mail address. A message that is sent again has the same
// Message-ID.
func (s *Service) mailEvent(ctx context.Context, w store.Webhook, id string, e api.WebhookEvent) (store.Outcome,
	error) {
	address, _ := mailAddress(w.URL)
	if err := s.config.checkAddress(w.Slug, address); err != nil {
		return store.Outcome{Status: "the address is not allowed"}, err
	}
	m, err := s.mailOf(w.Slug, address, id, e)
	if err != nil {
		return store.Outcome{Status: "not sent"}, err
	}
	sent, err := s.config.Mail.send(ctx, m)
	if sent.Status == notReached || sent.Status == badSettings {
		s.telemetry.outages.failed(ctx, "mail", err)
	} else {
		s.telemetry.outages.worked(ctx, "mail")
	}
	return sent, err
}

// mailOf writes the mail about an event. Its headers contain nothing that the event's actor chose.
// The subject contains no name at all, because mail providers show and log subjects.
func (s *Service) mailOf(slug, address, id string, e api.WebhookEvent) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	from := s.config.Mail.From
	if err := errors.Join(m.FromFormat("snapcloud", from), m.To(address)); err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(from, "@")
	m.Subject(mailSubject(e.Type))
	m.SetMessageIDWithValue(id + "@" + domain)
	m.SetDateWithValue(e.Timestamp)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetGenHeader("X-Auto-Response-Suppress", "All")
	m.SetBodyString(mail.TypeTextPlain, s.mailBody(slug, e))
	return m, nil
}

// mailSubject names the kind of an event.
func mailSubject(event snap.AuditAction) string {
	text := map[snap.AuditAction]string{
		snap.AuditPushed: "a snapshot was pushed", snap.AuditShared: "a snapshot was shared",
		snap.AuditUnshared: "a share ended", snap.AuditPulled: "a snapshot was pulled",
		snap.AuditDeleted: "a snapshot was deleted", snap.AuditOverdue: "a snapshot is overdue",
		snap.AuditShareExpires: "a share expires soon", snap.AuditAccessRequested: "somebody requests access",
		snap.AuditUserLeft: "somebody left", snap.AuditWebhookDisabled: "a webhook was disabled",
	}[event]
	return "snapcloud: " + cmp.Or(text, "test message")
}

// addressPart matches a dot before a letter, as in a host name, and the beginning of a URL.
var addressPart = regexp.MustCompile(`([.:])(\pL|//)`)

// breakLinks breaks up addresses that mail programs would turn into links, because anybody who
// pushes a snapshot chooses its name.
func breakLinks(text string) string { return addressPart.ReplaceAllString(text, "$1\u200b$2") }

func (s *Service) mailBody(slug string, e api.WebhookEvent) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nEvent:        %s\nOrganization: %s\nTime:         %s\n", breakLinks(sentence(e)),
		e.Type, slug, e.Timestamp.UTC().Format(time.RFC3339))
	if e.Number > 0 {
		fmt.Fprintf(&b, "Message:      %d\n", e.Number)
	}
	fmt.Fprintf(&b, "\nThe service at %s sends this because an owner or admin of %s added your address.\n"+
		"They can remove it with `snapcli cloud webhooks remove`.\n", s.config.PublicURL, slug)
	return b.String()
}

// mailtoURL returns the URL under which an e-mail address is stored, with its domain in lower case.
func mailtoURL(address string) string {
	name, domain, _ := strings.Cut(address, "@")
	return mailScheme + name + "@" + strings.ToLower(domain)
}
