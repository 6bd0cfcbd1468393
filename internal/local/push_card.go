package local

import (
	"context"

	"snap"
	"snap/api"
	"snap/internal/card"
)

// CardChoice is how much of a snapshot's card a push publishes.
type CardChoice string

// The choices of a card. The zero value publishes everything, or nothing if the snapshot is
// encrypted.
const (
	CardFull   CardChoice = "full"
	CardTables CardChoice = "tables" // no columns and no conditions of a subset
	CardNone   CardChoice = "none"
)

// CardChoices returns the choices.
func CardChoices() []CardChoice { return []CardChoice{CardFull, CardTables, CardNone} }

// card returns the card that a push publishes, or nil for none. It fails if the snapshot is
// encrypted, a card was chosen and no identity opens the snapshot.
func (a *Agent) card(s Snapshot, o PushOptions) (*api.Card, error) {
	if o.Card == CardNone || o.Card == "" && s.Encrypted > 0 {
		return nil, nil //nolint:nilnil // nothing is published
	}
	if err := a.Describe(&s, o.Identity); err != nil {
		return nil, err
	}
	if s.Card == nil && s.Encrypted > 0 {
		return nil, &snap.Error{Code: snap.CodeNoIdentity,
			Detail: "the snapshot is encrypted and no key on this machine opens it, so its card is unknown",
			Hint:   "name the key with --identity FILE, or omit --card"}
	}
	if s.Card == nil {
		return nil, nil //nolint:nilnil // the file is missing or damaged, which the transfer reports
	}
	published := card.Uncounted(*s.Card)
	if o.Card == CardTables {
		published = card.WithoutColumns(published)
	}
	return &published, nil
}

// pushCard publishes the card of a pushed snapshot. A snapshot that was already in the cloud gets a
// card if it has none or if the options choose one. It is no error if an older service does not
// support cards.
func pushCard(ctx context.Context, c *api.Client, id string, exists bool, described *api.Card,
	choice CardChoice) error {
	var err error
	switch {
	case exists && choice == CardNone:
		err = c.RemoveCard(ctx, id)
	case described == nil:
		return nil
	case exists && choice == "":
		var there api.SnapshotCard
		if there, err = c.Card(ctx, id, "", 1); err == nil && there.Card == nil {
			err = putCard(ctx, c, id, *described)
		}
	default:
		err = putCard(ctx, c, id, *described)
	}
	switch snap.CodeOf(err) {
	case snap.CodeNotFound, snap.CodeForbidden: // an older service, or a key that may only push
		return nil
	}
	return err
}

func putCard(ctx context.Context, c *api.Client, id string, described api.Card) error {
	r, err := card.Request(described)
	if err != nil {
		return err
	}
	return c.PutCard(ctx, id, r)
}
