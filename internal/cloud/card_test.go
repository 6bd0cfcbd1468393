package cloud_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/card"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// described returns a card of a table with a number of rows.
func described(rows int64) api.Card {
	return api.Card{ServerVersion: "17.2", Tables: []api.CardTable{{Name: "customer", Rows: rows,
		Columns: []api.CardColumn{{Name: "email", Type: "text", Mask: "email"}}}}}
}

func request(t *testing.T, c api.Card) api.PutCardRequest {
	t.Helper()
	r, err := card.Request(c)
	must(t, err)
	return r
}

// TestCardFollowsTheAccessRule: the people of the organization who see a snapshot see its card,
// everybody else gets the response for a snapshot that never existed, and a recipient organization
// sees the card only while its share includes it.
func TestCardFollowsTheAccessRule(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, bob, gail := c.As("alice@acme.test"), c.As("max@acme.test"), c.As("gail@globex.test")
	sn := c.Push(alice, "shop", []byte("1"))
	if err := alice.PutCard(t.Context(), sn.ID, request(t, described(3))); err != nil {
		t.Fatal(err)
	}
	shown := func(who *api.Client) (api.SnapshotCard, error) { return who.Card(t.Context(), sn.ID, "", 1) }
	if got, err := shown(alice); err != nil || got.Card == nil || got.Card.Tables[0].Columns[0].Mask != "email" ||
		*got.Totals != (api.CardTotals{Tables: 1, Columns: 1, Rows: 3}) {
		t.Fatalf("%v, %+v", err, got)
	}
	for _, who := range []*api.Client{bob, gail} {
		if _, err := shown(who); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("a private card: %v", err)
		}
	}
	if _, err := alice.Share(t.Context(), sn.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := shown(bob); err != nil || got.Card == nil {
		t.Errorf("a member: %v", err)
	}
	if err := bob.PutCard(t.Context(), sn.ID, request(t, described(9))); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a card by another user: %v", err)
	}
	if _, err := bob.Pulls(t.Context(), sn.ID); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("pulls for a member: %v", err)
	}
	yes, no := true, false
	for i, step := range []struct {
		with *bool
		sees bool
	}{{nil, false}, {&yes, true}, {nil, true}, {&no, false}, {&yes, true}} {
		with := api.SharesRequest{OrgSlugs: []string{"globex"}, WithSchema: step.with}
		if _, err := alice.ShareWith(t.Context(), sn.ID, with, true); err != nil {
			t.Fatal(err)
		}
		got, err := shown(gail)
		if err != nil || (got.Card != nil) != step.sees || got.Withheld == step.sees || got.Snapshot.Description != "" {
			t.Errorf("step %d: %v, %+v", i, err, got)
		}
	}
	if err := alice.UnshareOrg(t.Context(), sn.ID, "globex"); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.ShareOrg(t.Context(), sn.ID, "globex", nil); err != nil {
		t.Fatal(err)
	}
	if got, err := shown(gail); err != nil || got.Card != nil {
		t.Errorf("a new share includes the schema of an ended one: %v", err)
	}
	if changes, err := gail.CardChanges(t.Context(), sn.ID); err != nil || len(changes.Changes) > 0 {
		t.Errorf("%v, %+v", err, changes)
	}
	if err := alice.RemoveCard(t.Context(), sn.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := shown(alice); err != nil || got.Card != nil || got.Withheld {
		t.Errorf("%v, %+v", err, got)
	}
	for _, sees := range []bool{false, true} { // whether or not the share includes the schema, there is no card
		with := api.SharesRequest{OrgSlugs: []string{"globex"}, WithSchema: &sees}
		if _, err := alice.ShareWith(t.Context(), sn.ID, with, true); err != nil {
			t.Fatal(err)
		}
		if got, err := shown(gail); err != nil || got.Card != nil || got.Withheld == sees {
			t.Errorf("no card, the share includes the schema: %t: %v, %+v", sees, err, got)
		}
	}
}

// TestLargeCardIsPaged stores a card with 2,000 tables and 50,000 columns.
func TestLargeCardIsPaged(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	sn := c.Push(alice, "shop", []byte("1"))
	var large api.Card
	for i := range 2000 {
		table := api.CardTable{Name: fmt.Sprintf("t%d", i), Rows: 1}
		for j := range 25 {
			table.Columns = append(table.Columns, api.CardColumn{Name: fmt.Sprintf("c%d_%d", i, j), Type: "text"})
		}
		large.Tables = append(large.Tables, table)
	}
	if err := alice.PutCard(t.Context(), sn.ID, request(t, large)); err != nil {
		t.Fatal(err)
	}
	got, err := alice.Card(t.Context(), sn.ID, "", 100)
	if err != nil || got.Pages != 100 || got.Totals.Columns != 50000 || got.Card.Tables[19].Name != "t1999" {
		t.Fatalf("%v, %d pages, %+v", err, got.Pages, got.Totals)
	}
	if got, err = alice.Card(t.Context(), sn.ID, "", 101); err != nil || len(got.Card.Tables) > 0 {
		t.Errorf("a page after the last one: %v", err)
	}
	got, err = alice.Card(t.Context(), sn.ID, "c1999_24", 1)
	if err != nil || *got.Found != (api.CardTotals{Tables: 1, Columns: 1, Rows: 1}) || got.Pages != 1 {
		t.Errorf("%v, %+v", err, got.Found)
	}
	var part bytes.Buffer
	w := gzip.NewWriter(&part)
	_, err = w.Write(make([]byte, card.MaxBytes/8))
	must(t, errors.Join(err, w.Close()))
	bomb := bytes.Repeat(part.Bytes(), 20*8) // of 20 times MaxBytes: concatenated gzip files are read as one
	for name, r := range map[string]api.PutCardRequest{
		"an escape in a name": {Card: &api.Card{Tables: []api.CardTable{{Name: "a\x1b[2J"}}}},
		"a bomb":              {Gzip: bomb},
		"no gzip":             {Gzip: []byte("{}")},
		"nothing":             {},
	} {
		if err := alice.PutCard(t.Context(), sn.ID, r); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCountedRowsNeedTheEarlierSnapshot counts the rows that differ from an earlier snapshot. Only
// people who see both snapshots with their cards learn how many, and nobody learns the checksum of
// the earlier one.
func TestCountedRowsNeedTheEarlierSnapshot(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, bob, gail := c.As("alice@acme.test"), c.As("max@acme.test"), c.As("gail@globex.test")
	first, second := c.Push(alice, "shop", []byte("1")), c.Push(alice, "shop", []byte("2"))
	counted := described(5)
	counted.Since, counted.Tables[0].Differ = first.SHA256, &api.CardRows{Added: 3, Removed: 1, Changed: 2}
	must(t, errors.Join(alice.PutCard(t.Context(), first.ID, request(t, described(3))),
		alice.PutCard(t.Context(), second.ID, request(t, counted))))
	yes, no := true, false
	share := func(id string, everyone bool, schema *bool) {
		with := api.SharesRequest{OrgWide: everyone, OrgSlugs: []string{"globex"}, WithSchema: schema}
		if _, err := alice.ShareWith(t.Context(), id, with, true); err != nil {
			t.Fatal(err)
		}
	}
	check := func(step string, who *api.Client, want *api.CardRows) {
		t.Helper()
		for _, q := range []string{"", "customer"} {
			got, err := who.Card(t.Context(), second.ID, q, 1)
			if err != nil || got.Card != nil && (got.Card.Since != "" || got.Card.Tables[0].Differ != nil) {
				t.Errorf("%s: the card says what changed: %v, %+v", step, err, got.Card)
			}
		}
		got, err := who.CardChanges(t.Context(), second.ID)
		if err != nil || got.Counted != (want != nil) {
			t.Errorf("%s: %v, %+v", step, err, got)
		}
		for _, change := range got.Changes {
			if !reflect.DeepEqual(change.Differ, want) {
				t.Errorf("%s: %+v", step, change)
			}
		}
		if want != nil && len(got.Changes) == 0 {
			t.Errorf("%s: no changes", step)
		}
	}
	share(second.ID, true, &yes)
	check("the pusher", alice, counted.Tables[0].Differ)
	check("a member who sees only the later one", bob, nil)
	check("an organization that sees only the later one", gail, nil)
	share(first.ID, true, &no)
	check("a member", bob, counted.Tables[0].Differ)
	check("an organization without the schema of the earlier one", gail, nil)
	share(first.ID, true, &yes)
	check("an organization", gail, counted.Tables[0].Differ)

	between := c.Push(alice, "shop", []byte("3"))
	must(t, errors.Join(alice.PutCard(t.Context(), between.ID, request(t, counted))))
	if got, err := alice.CardChanges(t.Context(), between.ID); err != nil || got.Counted ||
		got.Previous.ID != second.ID {
		t.Errorf("rows are counted since a snapshot that is not the one before: %v, %+v", err, got)
	}
}

// TestDescriptionsChangesAndPulls describes a snapshot, finds it, compares it with the one before
// it and counts its pulls.
func TestDescriptionsChangesAndPulls(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, bob, gail := c.As("alice@acme.test"), c.As("max@acme.test"), c.As("gail@globex.test")
	first, second := c.Push(alice, "shop", []byte("1")), c.Push(alice, "shop", []byte("2"))
	for i, id := range []string{first.ID, second.ID} {
		if err := alice.PutCard(t.Context(), id, request(t, described(int64(3+i)))); err != nil {
			t.Fatal(err)
		}
		with := api.SharesRequest{OrgWide: true, OrgSlugs: []string{"globex"}}
		if _, err := alice.ShareWith(t.Context(), id, with, true); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := bob.CardChanges(t.Context(), second.ID)
	want := []api.CardChange{{Table: "customer", Change: "rows", Rows: 4, More: 1}}
	if err != nil || changes.Previous == nil || changes.Previous.ID != first.ID ||
		!slices.Equal(changes.Changes, want) {
		t.Errorf("%v, %+v", err, changes)
	}
	text := api.DescribeRequest{Description: "Before the Migration", Labels: []string{"release 7", "release 7"}}
	if _, err := bob.Describe(t.Context(), first.ID, text); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("described by a member: %v", err)
	}
	got, err := alice.Describe(t.Context(), first.ID, text)
	if err != nil || !slices.Equal(got.Labels, text.Labels[:1]) {
		t.Fatalf("%v, %+v", err, got)
	}
	finds := func(who *api.Client, q string) (ids []string) {
		page, err := who.Snapshots(t.Context(), api.ListOptions{Q: q})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Items {
			ids = append(ids, s.ID)
		}
		return ids
	}
	for _, q := range []string{"migr", "before release", "shop 7"} {
		if got := finds(bob, q); !slices.Equal(got, []string{first.ID}) {
			t.Errorf("%q finds %v", q, got)
		}
		if got := finds(gail, q); len(got) > 0 {
			t.Errorf("another organization finds %v by the description", got)
		}
	}
	if _, err := alice.Describe(t.Context(), first.ID, api.DescribeRequest{Labels: []string{}}); err != nil {
		t.Fatal(err)
	}
	if got := finds(bob, "migr"); len(got) > 0 {
		t.Errorf("a removed description finds %v", got)
	}
	for _, who := range []*api.Client{bob, bob, gail} {
		if err := who.Pulled(t.Context(), first.ID, 1); err != nil {
			t.Fatal(err)
		}
	}
	pulls, err := alice.Pulls(t.Context(), first.ID)
	for i := range pulls {
		pulls[i].LastAt = time.Time{}
	}
	slices.SortFunc(pulls, func(a, b api.PullCount) int { return int(b.Times - a.Times) })
	if err != nil || !slices.Equal(pulls, []api.PullCount{{Email: "max@acme.test", Organization: "acme", Times: 2},
		{Organization: "globex", Times: 1}}) {
		t.Errorf("%v, %+v", err, pulls)
	}
}
