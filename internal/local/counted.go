package local

import (
	"context"
	"errors"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/diff"
)

// Counted holds the numbers of rows that differ from an earlier snapshot. The rows are counted when
// the snapshot is pushed, so that builds do not take longer.
type Counted struct {
	Since  string                  `json:"since"`            // SHA-256 of the earlier snapshot
	Tables map[string]api.CardRows `json:"tables,omitempty"` // the tables with differing rows, by label
}

// maxCounted is the maximum size in bytes of a file whose rows a push counts. Reading two such
// files takes about as long as writing the delta between them.
const maxCounted = 1 << 30

// addTo returns a card with these numbers added.
func (n *Counted) addTo(c api.Card) api.Card {
	c = card.Uncounted(c)
	if n == nil {
		return c
	}
	c.Since = n.Since
	for i, t := range c.Tables {
		if rows, differs := n.Tables[t.Label()]; differs {
			c.Tables[i].Differ = &rows
		}
	}
	return c
}

// count counts the rows in which a pushed snapshot differs from an earlier one: the newest that is
// both in the cloud and on this machine. It returns nil if there is no earlier snapshot, if
// counting would take too long, or if it fails or is interrupted. sent is the delta that was
// pushed, or nil.
func (a *Agent) count(ctx context.Context, c *api.Client, s Snapshot, sent *sentDelta, o PushOptions,
	p Progress) *Counted {
	n, err := a.tryCount(ctx, c, s, sent, o, p)
	if err = errors.Join(err, ctx.Err()); err != nil {
		a.log.Debug("the rows that changed are not counted", "snapshot", s.Name, "error", err)
		return nil
	}
	return n
}

func (a *Agent) tryCount(ctx context.Context, c *api.Client, s Snapshot, sent *sentDelta, o PushOptions,
	p Progress) (*Counted, error) {
	var base Snapshot
	if sent != nil {
		base = sent.base
	} else {
		var err error
		if base, _, err = a.commonBase(ctx, c, s); err != nil {
			return nil, err
		}
	}
	n := &Counted{Since: base.SHA256}
	if sent != nil && sent.Same {
		return n, nil
	}
	if s.Counted != nil && s.Counted.Since == base.SHA256 {
		return s.Counted, nil
	}
	if max(s.Size, base.Size) > maxCounted {
		return nil, snap.Invalid("the snapshots are too large", "")
	}
	d, err := a.Diff(ctx, base.Name, s.Name, DiffOptions{Identity: o.Identity}, p)
	if err != nil {
		return nil, err
	}
	n.Tables = differingRows(d.Tables)
	return n, nil
}

func differingRows(tables []diff.Table) map[string]api.CardRows {
	all := map[string]api.CardRows{}
	for _, t := range tables {
		all[snap.TableName(t.Schema, t.Name)] = api.CardRows{Added: t.Added, Removed: t.Removed, Changed: t.Changed}
	}
	return all
}

// Changes compares a snapshot with the previous local snapshot of the same target and type. Call
// [Agent.Describe] for the snapshot first. previous is nil if there is no earlier snapshot, or if
// the content of either is not known.
func (a *Agent) Changes(s Snapshot) (previous *Snapshot, changes []api.CardChange, err error) {
	if s.Card == nil {
		return nil, nil, nil
	}
	all, err := a.Snapshots(s.Target)
	if err != nil {
		return nil, nil, err
	}
	for _, before := range all { // the newest first
		if before.Type != s.Type || !before.Created.Before(s.Created) {
			continue
		}
		if err := a.Describe(&before, nil); err != nil || before.Card == nil {
			return nil, nil, err
		}
		return &before, card.Compare(*before.Card, *s.Card, before.SHA256), nil
	}
	return nil, nil, nil
}
