package local

import (
	"cmp"
	"context"
	"errors"

	"snap"
	"snap/api"
)

// Revoked is a template that was dropped because the user no longer has access to its snapshot.
type Revoked struct {
	Snapshot string
	Clones   int // number of its clones, which are not dropped
}

// DropRevoked drops the templates of pulled snapshots that the user no longer has access to. It
// asks the service about each one. It keeps the templates of snapshots that somebody other than c's
// caller pulled, such as another account of the user. Existing clones and the pulled files stay. It
// sends no request if there are no templates of pulled snapshots.
func (a *Agent) DropRevoked(ctx context.Context, c *api.Client) (revoked []Revoked, err error) {
	registry := a.clones()
	templates, err := registry.Templates()
	if err != nil || len(templates) == 0 {
		return nil, err
	}
	pulled, err := a.pulledFrom(c.BaseURL())
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		s, found := pulled[t.Source.SHA256]
		if !found {
			continue
		}
		if _, err := c.Snapshot(ctx, s.Cloud[c.BaseURL()]); snap.CodeOf(err) != snap.CodeNotFound {
			continue // still visible, or no response: ask again next time
		}
		if as, err := callerOf(ctx, c); err != nil || as != s.PulledAs {
			continue
		}
		n, failed := registry.ClonesOf(t)
		dropped := false
		if failed == nil {
			dropped, failed = registry.DropTemplate(ctx, t)
		}
		if dropped && failed == nil {
			revoked = append(revoked, Revoked{Snapshot: t.Source.Snapshot, Clones: n})
		}
		err = errors.Join(err, failed)
	}
	return revoked, err
}

// callerOf identifies the user or the organization-level key that a client acts for.
func callerOf(ctx context.Context, c *api.Client) (string, error) {
	me, err := c.Me(ctx)
	if err != nil {
		return "", err
	}
	return cmp.Or(me.Email, me.Credential.Name) + " of " + me.Organization, nil
}

// pulledFrom returns the local snapshots that a known caller pulled from a service, by checksum.
func (a *Agent) pulledFrom(service string) (map[string]Snapshot, error) {
	all, err := a.Snapshots("")
	pulled := map[string]Snapshot{}
	for _, s := range all {
		if s.Cloud[service] != "" && s.PulledAs != "" {
			pulled[s.SHA256] = s
		}
	}
	return pulled, err
}
