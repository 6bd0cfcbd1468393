package local

import (
	"context"
	"errors"

	"snap"
	"snap/api"
	"snap/internal/clone"
)

// Revoked is a template that was dropped because the user no longer has access to its snapshot.
type Revoked struct {
	Snapshot string
	Clones   int // number of its clones, which are not dropped
}

// DropRevoked drops the templates of pulled snapshots that the user no longer has access to. It
// asks the service about each one. Existing clones and the pulled files stay. It sends no request
// if there are no such templates.
func (a *Agent) DropRevoked(ctx context.Context, c *api.Client) (revoked []Revoked, err error) {
	registry := a.clones()
	templates, err := registry.Templates()
	if err != nil || len(templates) == 0 {
		return nil, err
	}
	ids, err := a.pulledFrom(c.BaseURL())
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		id := ids[t.Source.SHA256]
		if id == "" {
			continue
		}
		if _, err := c.Snapshot(ctx, id); snap.CodeOf(err) != snap.CodeNotFound {
			continue // still visible, or no response: ask again next time
		}
		one, failed := dropRevoked(ctx, registry, t)
		err = errors.Join(err, failed)
		revoked = append(revoked, one...)
	}
	return revoked, err
}

func dropRevoked(ctx context.Context, registry *clone.Registry, t clone.Template) ([]Revoked, error) {
	n, err := registry.ClonesOf(t)
	if err != nil {
		return nil, err
	}
	dropped, err := registry.DropTemplate(ctx, t)
	if err != nil || !dropped {
		return nil, err
	}
	return []Revoked{{Snapshot: t.Source.Snapshot, Clones: n}}, nil
}

// pulledFrom returns the IDs of the local snapshots that were pulled from a service, by checksum.
func (a *Agent) pulledFrom(service string) (map[string]string, error) {
	all, err := a.Snapshots("")
	ids := map[string]string{}
	for _, s := range all {
		if id := s.Cloud[service]; id != "" && s.Pulled {
			ids[s.SHA256] = id
		}
	}
	return ids, err
}
