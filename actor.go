package snap

import (
	"context"
	"strings"
)

// The parts of the service that act for an organization on their own, not on behalf of a person.
const (
	PartProvider  = "identity provider" // a sign-in, a recheck, or a back-channel logout
	PartRetention = "retention"
	PartExpiry    = "expiry"
	PartWebhooks  = "webhooks"
)

// Acting returns the caller that the audit log shows for a part of the service, or for something
// else that is neither a person nor a key.
func Acting(org OrgRef, part string) Caller {
	return Caller{Org: org, Credential: Credential{Name: part}}
}

// ActingAs returns a context that makes c the recorded actor of changes to users, keys and
// sessions.
func ActingAs(ctx context.Context, c Caller) context.Context {
	o := OriginOf(ctx)
	o.Caller = c
	return WithOrigin(ctx, o)
}

// By describes in words who acted: a person (by their e-mail), a key, a part of the service, an
// organization, or the operator.
func (e AuditEntry) By() string {
	switch {
	case e.Actor != "":
		return e.Actor
	case e.ActorOrg == "":
		return "the operator"
	case e.Credential == "":
		return e.ActorOrg
	}
	kind, name, _ := strings.Cut(e.Credential, " ")
	switch k := CredentialKind(kind); {
	case k.OrgLevel() && name == "":
		return "a key of " + e.ActorOrg
	case k.OrgLevel():
		return "the key " + name + " of " + e.ActorOrg
	case k == SCIMKey:
		return "the SCIM key " + name + " of " + e.ActorOrg
	case e.Credential == PartProvider:
		return "the identity provider of " + e.ActorOrg
	}
	return e.Credential + " of " + e.ActorOrg
}
