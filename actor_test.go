package snap_test

import (
	"context"
	"testing"

	"snap"
)

// TestByNamesTheActor: By says "the operator" only of the operator.
func TestByNamesTheActor(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]snap.AuditEntry{
		"mia@acme.test":                 {Actor: "mia@acme.test", ActorOrg: "acme", Credential: "cak ci"},
		"the operator":                  {},
		"the key deploy of acme":        {ActorOrg: "acme", Credential: "clt deploy"},
		"a key of acme":                 {ActorOrg: "acme", Credential: "sak"},
		"the SCIM key okta of acme":     {ActorOrg: "acme", Credential: "scim okta"},
		"the identity provider of acme": {ActorOrg: "acme", Credential: snap.PartProvider},
		"retention of acme":             {ActorOrg: "acme", Credential: snap.PartRetention},
		"channel 4 of acme":             {ActorOrg: "acme", Credential: "channel 4"},
		"acme":                          {ActorOrg: "acme"},
	} {
		if got := e.By(); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// TestActingAsKeepsTheRest: the address and request ID of the request stay.
func TestActingAsKeepsTheRest(t *testing.T) {
	t.Parallel()
	ctx := snap.WithOrigin(context.Background(), snap.Origin{Address: "192.0.2.7", RequestID: "r"})
	acme := snap.OrgRef{ID: 3, Slug: "acme"}
	o := snap.OriginOf(snap.ActingAs(ctx, snap.Acting(acme, snap.PartProvider)))
	if o.Address != "192.0.2.7" || o.RequestID != "r" || o.Caller.Org != acme ||
		o.Caller.Credential.Name != snap.PartProvider {
		t.Errorf("%+v", o)
	}
}
