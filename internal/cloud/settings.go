package cloud

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// applySettings records the configuration of each organization. A change since the last start is
// recorded in the audit log of every organization that it concerns.
func (s *Service) applySettings(ctx context.Context) error {
	key, err := s.store.Secret(ctx, "settings", sha256.Size)
	if err != nil {
		return err
	}
	for _, o := range s.config.Organizations {
		org, err := s.store.OrgBySlug(ctx, o.Slug)
		if err != nil {
			return err
		}
		settings := s.config.commonSettings()
		o.settings(settings)
		for name, value := range settings {
			switch {
			case value == "":
				delete(settings, name)
			case isSecret(name):
				settings[name] = keyedDigest(key, value)
			}
		}
		if err := s.store.ApplySettings(ctx, org.ID, settings, isSecret); err != nil {
			return fmt.Errorf("record the configuration of %s: %w", o.Slug, err)
		}
	}
	return nil
}

// isSecret reports whether the value of a setting must not be shown.
func isSecret(name string) bool {
	return strings.HasSuffix(name, ".password") || strings.HasSuffix(name, ".client_secret")
}

// keyedDigest returns a digest of a secret. Somebody who can read the digest but not the key cannot
// try passwords against it.
func keyedDigest(key []byte, value string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(value))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// commonSettings returns the settings of the service that affect sign-in, webhooks or the contents
// of the audit log in every organization.
func (c Config) commonSettings() map[string]string {
	return map[string]string{
		"public_url": c.PublicURL, "auth.issuer": c.Auth.Issuer, "auth.audience": c.Auth.Audience,
		"auth.client_id": c.Auth.ClientID, "trust_proxies": joinSorted(c.TrustProxies),
		"webhooks.allow_private": switchText(c.Webhooks.AllowPrivate), "allow_local": switchText(c.AllowLocal),
	}
}

// settings adds an organization's own settings. Changes to its snap.Policy are recorded separately.
func (o Organization) settings(to map[string]string) {
	in := o.SignIn
	to["name"] = o.Name
	to["policy.max_staleness"], to["policy.max_login"] = o.Policy.MaxStaleness, o.Policy.MaxLogin
	for name, value := range map[string]string{
		"type": in.Type, "issuer": in.Issuer, "client_id": in.ClientID, "client_secret": in.ClientSecret,
		"scopes": joinSorted(in.Scopes), "domains": joinSorted(in.Domains), "groups_claim": in.GroupsClaim,
		"external_id_claim": in.ExternalIDClaim, "allow_private": switchText(in.AllowPrivate), "recheck": in.Recheck,
	} {
		to["sign_in."+name] = value
	}
	for _, t := range o.Trust {
		to["trust."+t.Name] = t.String()
	}
	for role, groups := range in.Roles {
		to["sign_in.roles."+string(role)] = joinSorted(groups)
	}
	for _, u := range o.Users {
		at := "users." + strings.ToLower(u.Email)
		to[at] = strings.TrimRight(string(u.Role)+" "+joinSorted(u.Groups), " ")
		to[at+".name"], to[at+".password"] = u.Name, u.Password
	}
}

func joinSorted(texts []string) string {
	return strings.Join(slices.Sorted(slices.Values(texts)), ", ")
}

// switchText formats a switch. Off is "", like a missing setting.
func switchText(on bool) string {
	if on {
		return "true"
	}
	return ""
}
