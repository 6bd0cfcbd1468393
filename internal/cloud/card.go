package cloud

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/store"
)

type putCardInput struct {
	ByID
	Body api.PutCardRequest
}

// putCard stores a snapshot's card in place of an earlier one.
func (s *Service) putCard(ctx context.Context, in *putCardInput) (*body[api.CardTotals], error) {
	c := callOf(ctx)
	if err := checkMayPutCard(c.caller, c.snapshot); err != nil {
		return nil, err
	}
	parsed, err := card.Received(in.Body)
	if err != nil {
		return nil, err
	}
	packed, err := card.Pack(parsed)
	if err != nil {
		return nil, err
	}
	return &body[api.CardTotals]{card.Totals(parsed.Tables)},
		s.store.SetCard(ctx, c.caller, c.snapshot, store.Card(packed))
}

func (s *Service) removeCard(ctx context.Context, _ *ByID) (*empty, error) {
	c := callOf(ctx)
	if err := checkMayPutCard(c.caller, c.snapshot); err != nil {
		return nil, err
	}
	return &empty{}, s.store.SetCard(ctx, c.caller, c.snapshot, store.Card{})
}

// checkMayPutCard allows the pusher of a snapshot and every caller who may describe it. All
// organization-level keys of the organization that owns a snapshot count as one pusher.
func checkMayPutCard(c snap.Caller, sn snap.Snapshot) error {
	if c.User == nil && sn.Owner == nil && sn.Org.ID == c.Org.ID {
		return nil
	}
	return snap.Allowed(c, snap.ActDescribe, sn)
}

type cardInput struct {
	ByID
	Page int    `query:"page" minimum:"1" maximum:"100000" default:"1" doc:"page of the tables, counted from 1"`
	Q    string `query:"q" maxLength:"100" doc:"words that the name, type or mask of a table or column must contain"`
}

// getCard returns a page of a snapshot's card.
func (s *Service) getCard(ctx context.Context, in *cardInput) (*body[api.SnapshotCard], error) {
	c := callOf(ctx)
	described, err := s.singleSnapshot(ctx, c)
	if err != nil {
		return nil, err
	}
	out := api.SnapshotCard{Snapshot: described, Page: in.Page}
	stored, err := s.store.CardPage(ctx, c.caller, c.snapshot, in.Page)
	if errors.Is(err, snap.ErrNotFound) {
		may, err := s.store.MayReadCard(ctx, c.caller, c.snapshot)
		out.Withheld = c.snapshot.Received && !may
		return &body[api.SnapshotCard]{out}, err
	}
	if err != nil {
		return nil, err
	}
	head, totals, err := card.UnpackHead(stored.Head)
	if err != nil {
		return nil, err
	}
	out.Card, out.Totals, out.Pages = &head, &totals, stored.Pages
	head.Since, head.Tables = "", []api.CardTable{}
	if strings.TrimSpace(in.Q) == "" {
		if stored.Body != nil {
			head.Tables, err = card.UnpackPage(stored.Body)
			head.Tables = card.UncountedTables(head.Tables)
		}
		return &body[api.SnapshotCard]{out}, err
	}
	all, err := s.cardTables(ctx, c, c.snapshot)
	found := card.Find(card.UncountedTables(all), in.Q)
	pages, sums := card.Pages(found), card.Totals(found)
	out.Found, out.Pages = &sums, len(pages)
	if in.Page <= len(pages) {
		head.Tables = append(head.Tables, pages[in.Page-1]...)
	}
	return &body[api.SnapshotCard]{out}, err
}

// wholeCard returns a card that the caller may read, or an empty one.
func (s *Service) wholeCard(ctx context.Context, c *call, sn snap.Snapshot) (api.Card, error) {
	stored, err := s.store.CardPage(ctx, c.caller, sn, 1)
	if errors.Is(err, snap.ErrNotFound) {
		return api.Card{}, nil
	}
	if err != nil {
		return api.Card{}, err
	}
	whole, _, err := card.UnpackHead(stored.Head)
	if err == nil {
		whole.Tables, err = s.cardTables(ctx, c, sn)
	}
	return whole, err
}

// cardTables returns all tables of a card that the caller may read.
func (s *Service) cardTables(ctx context.Context, c *call, sn snap.Snapshot) (all []api.CardTable, err error) {
	pages, err := s.store.CardPages(ctx, c.caller, sn)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		tables, err := card.UnpackPage(page)
		if err != nil {
			return nil, err
		}
		all = append(all, tables...)
	}
	return all, nil
}

// maxChanges limits the listed differences between two cards.
const maxChanges = 1000

// cardChanges compares a snapshot's card with that of the previous snapshot that the caller sees.
// The response says how many rows differ only if the pusher compared the rows with those of that
// snapshot.
func (s *Service) cardChanges(ctx context.Context, _ *ByID) (*body[api.CardChanges], error) {
	c := callOf(ctx)
	out := api.CardChanges{Changes: []api.CardChange{}}
	if _, err := s.store.CardPage(ctx, c.caller, c.snapshot, 1); err != nil {
		if errors.Is(err, snap.ErrNotFound) {
			err = nil
		}
		return &body[api.CardChanges]{out}, err
	}
	before, err := s.store.Previous(ctx, c.caller, c.snapshot)
	if errors.Is(err, snap.ErrNotFound) {
		return &body[api.CardChanges]{out}, nil
	}
	if err != nil {
		return nil, err
	}
	old, err := s.wholeCard(ctx, c, before)
	if err != nil {
		return nil, err
	}
	now, err := s.wholeCard(ctx, c, c.snapshot)
	if err != nil {
		return nil, err
	}
	wire := wireSnapshot(before)
	all := card.Compare(old, now, before.SHA256)
	out.Previous, out.Changes = &wire, all[:min(len(all), maxChanges)]
	out.Counted = card.Counts(now, before.SHA256)
	out.More = len(all) - len(out.Changes)
	return &body[api.CardChanges]{out}, nil
}

type describeInput struct {
	ByID
	Body api.DescribeRequest
}

// describe replaces a snapshot's description and labels.
func (s *Service) describe(ctx context.Context, in *describeInput) (*body[api.Snapshot], error) {
	c := callOf(ctx)
	labels := []string{}
	for _, label := range in.Body.Labels {
		label = strings.TrimSpace(label)
		if label == "" || utf8.RuneCountInString(label) > 40 || snap.CleanText(label) != label {
			return nil, snap.Invalid("a label is empty, is longer than 40 characters or has control characters", "")
		}
		if !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	text := strings.TrimSpace(snap.CleanText(strings.ReplaceAll(in.Body.Description, "\n", " ")))
	if err := s.store.Describe(ctx, c.caller, c.snapshot, text, labels); err != nil {
		return nil, err
	}
	described := c.snapshot
	described.Description, described.Labels = text, labels
	return &body[api.Snapshot]{wireSnapshot(described)}, nil
}

// pullCounts lists who pulled a snapshot.
func (s *Service) pullCounts(ctx context.Context, _ *ByID) (*body[api.PullCounts], error) {
	c := callOf(ctx)
	pulls, err := s.store.Pulls(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	return &body[api.PullCounts]{api.PullCounts{Items: each(pulls, func(p store.Pull) api.PullCount {
		return api.PullCount{Email: p.Email, Organization: p.Organization, Times: p.Times, LastAt: p.Last}
	})}}, nil
}
