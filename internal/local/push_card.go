package local

import (
	"context"
	"fmt"
	"time"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/transfer"
)

// CardChoice is how much of a snapshot's card a push publishes.
type CardChoice string

// The choices of a card. The zero value publishes everything, or nothing if the snapshot is
// encrypted.
const (
	CardFull   CardChoice = "full"
	CardTables CardChoice = "tables" // tables without columns, and no subset conditions
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

// publishTimeout is how long publishing a card may take after the command was interrupted.
const publishTimeout = 10 * time.Second

// publish publishes the card of a pushed snapshot, and records the snapshot's ID. For the card, it
// counts the rows that differ from an earlier snapshot. If the count is interrupted, publish still
// publishes the card, without these numbers, because the snapshot is already in the cloud. sent is
// as for [Agent.count].
func (a *Agent) publish(ctx context.Context, c *api.Client, s Snapshot, done transfer.Uploaded, sent *sentDelta,
	described *api.Card, o PushOptions, p Progress) error {
	var interrupted error
	if described != nil && (sent != nil || !done.Exists) {
		counted := a.count(ctx, c, s, sent, o, p)
		*described = counted.addTo(*described)
		if s.Encrypted == 0 { // the record of an encrypted snapshot has nothing about its tables
			s.Counted = counted
		}
		if interrupted = ctx.Err(); interrupted != nil {
			var end context.CancelFunc
			ctx, end = context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
			defer end()
		}
	}
	if err := pushCard(ctx, c, done.ID, done.Exists, described, o.Card); err != nil {
		return err
	}
	if _, err := a.noteCloud(s, c.BaseURL(), done.ID); err != nil || interrupted == nil {
		return err
	}
	return &snap.Error{Code: snap.CodeInterrupted, Cause: interrupted,
		Detail: "counting the changed rows was interrupted",
		Hint:   fmt.Sprintf("nothing else is missing: %s is in the cloud as %s", s.Name, done.ID)}
}

// pushCard publishes the card of a pushed snapshot. A snapshot that was already in the cloud gets a
// card if it has none or if the options choose one; [CardNone] removes its card. It is not an error
// if an older service does not support cards.
func pushCard(ctx context.Context, c *api.Client, id string, exists bool, described *api.Card,
	choice CardChoice) error {
	var err error
	switch {
	case exists && choice == CardNone:
		err = c.RemoveCard(ctx, id)
	case described == nil:
		return nil
	case exists && choice == "":
		var stored api.SnapshotCard
		if stored, err = c.Card(ctx, id, "", 1); err == nil && stored.Card == nil {
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
