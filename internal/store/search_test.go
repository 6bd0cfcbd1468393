package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// A search finds IDs and the beginning of any word of the name, the target and the owner. Several
// words must all match.
func TestSearchFindsWords(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		shop := w.pushNamed(alice, "shop_eu", "shop_eu-20261122T211134Z")
		old := w.pushNamed(adam, "shop_eu", "shop_eu-20251122T001503Z-2")
		named := w.pushNamed(adam, "Orders", "before the great Migration")
		for q, want := range map[string][]snap.Snapshot{
			"shop": {shop, old}, "SHOP": {shop, old}, "eu": {shop, old}, "hop": nil, "sho eu": {shop, old},
			"20261122": {shop}, "211134": {shop}, "2026": {shop}, "20": {shop, old}, "2": {shop, old}, "21": {shop},
			"20261122T2111": {shop}, "20261122T211134Z": {shop}, "00": {old}, "001503": {old}, "0015": {old},
			"015":   nil,
			"alice": {shop}, "alice@acme.test": {shop}, "ali 2026": {shop}, "ali 2025": nil, "adam shop": {old},
			"acme": {shop, old, named}, "great": {named}, "migr BEFORE": {named}, "orders great adam": {named},
			"orders shop": nil, "-": nil, "%": nil, "  ": {shop, old, named}, "shop_eu-20251122": {old},
			shop.ID: {shop}, shop.ID[:12]: {shop}, shop.ID[5:12]: {shop}, "snap_": nil, shop.ID[:12] + " eu": {shop},
			shop.ID[:12] + " great": nil,
		} {
			if got := w.search(adam, store.Query{Q: q}); !sameIDs(got, want) {
				t.Errorf("%q finds %v, want %v", q, namesOf(got), namesOf(want))
			}
		}
		if got := w.search(alice, store.Query{Q: "20"}); !sameIDs(got, []snap.Snapshot{shop}) {
			t.Errorf("alice finds %v", namesOf(got))
		}
		for name, c := range map[string]struct {
			q    store.Query
			want []snap.Snapshot
		}{
			"mine":       {store.Query{Q: "shop", Filter: snap.FilterMine}, []snap.Snapshot{old}},
			"target":     {store.Query{Q: "adam", Target: "Orders"}, []snap.Snapshot{named}},
			"type":       {store.Query{Q: "shop", Type: snap.TypeSanitized}, nil},
			"other type": {store.Query{Q: "shop", Type: snap.TypeSnapshot}, []snap.Snapshot{shop, old}},
		} {
			if got := w.search(adam, c.q); !sameIDs(got, c.want) {
				t.Errorf("%s: %v, want %v", name, namesOf(got), namesOf(c.want))
			}
		}

		// A received snapshot is found by its name but not by its owner, whom the recipient is not
		// allowed to know. A revocation takes effect at once.
		gail := w.user(w.globex, "gail", snap.RoleMember)
		w.ok(w.Share(w.ctx, adam, old))
		_, _, err := w.ShareOrg(w.ctx, adam, shop, w.globex.Slug, w.clock.Now().Add(1e9))
		w.ok(err)
		if got := w.search(gail, store.Query{Q: "211134"}); len(got) != 1 ||
			len(w.search(gail, store.Query{Q: "alice"})) != 0 {
			t.Errorf("gail finds %v by the name, or finds it by its owner", namesOf(got))
		}
		w.clock.Advance(2e9)
		if got := w.search(gail, store.Query{Q: "211134"}); len(got) != 0 {
			t.Errorf("after the share has ended gail finds %v", namesOf(got))
		}
		w.ok(w.Unshare(w.ctx, adam, old))
		if got := w.search(alice, store.Query{Q: "2025"}); len(got) != 0 {
			t.Errorf("after the unshare alice finds %v", namesOf(got))
		}
		// A search uses a user's new name.
		w.rename(alice, "Elise Example")
		if got := w.search(adam, store.Query{Q: "elise exam"}); !sameIDs(got, []snap.Snapshot{shop}) {
			t.Errorf("by the new name: %v", namesOf(got))
		}
	})
}

// Rows of an earlier release, which did not index words, are found too.
func TestSearchFindsWhatAnEarlierReleaseWrote(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		sn := w.pushNamed(adam, "shop", "shop-20261122T211134Z nightly")
		for _, text := range []string{
			`UPDATE snapshots SET named_day = NULL, named_time = NULL, label_id = NULL`,
			`UPDATE grants SET owner_id = NULL, named_day = NULL, named_time = NULL, label_id = NULL`,
			`UPDATE org_targets SET indexed = 0`, `UPDATE users SET words = ''`, `DELETE FROM words`,
			`DELETE FROM labels`,
		} {
			_, err := w.DB().ExecContext(w.ctx, text)
			w.ok(err)
		}
		for _, q := range []string{"shop", "20261122", "2111", "adam", "nightly", "shop adam 2026 night"} {
			if got := w.search(adam, store.Query{Q: q}); !sameIDs(got, []snap.Snapshot{sn}) {
				t.Errorf("%q finds %v", q, namesOf(got))
			}
		}
	})
}

// A search finds everything even if its word is the beginning of more words than it reads.
func TestSearchOfManyWords(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		azra := w.user(w.acme, "azra", snap.RoleAdmin)
		sn := w.pushNamed(azra, "shop", "nightly")
		w.ok(w.Index(w.ctx))
		_, err := w.DB().ExecContext(w.ctx, `INSERT INTO words(org_id, kind, word, id)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
			SELECT o.org_id, o.kind, w.word, 1000000 + n.i FROM n, (SELECT 'abbot' AS word UNION SELECT 'abby') w,
				(SELECT DISTINCT org_id, kind FROM words WHERE word = 'azra') o`)
		w.ok(err)
		if got := w.search(azra, store.Query{Q: "a"}); !sameIDs(got, []snap.Snapshot{sn}) {
			t.Errorf("it finds %v", namesOf(got))
		}
	})
}

// Consecutive pages of a search have no gaps, for words that match rarely and for words that match
// almost everything.
func TestSearchPages(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice, adam := w.user(w.acme, "alice", snap.RoleMember), w.user(w.acme, "adam", snap.RoleAdmin)
		var all []snap.Snapshot
		for i := range 30 {
			by, target := alice, "orders"
			if i%3 == 0 {
				by, target = adam, fmt.Sprintf("shop%d", i%5)
			}
			all = append(all, w.pushNamed(by, target, fmt.Sprintf("%s-202611%02dT%02d0000Z", target, i%7+1, i%24)))
		}
		for _, q := range []string{"shop", "adam", "20261101", "202611", "shop adam", "orders 20261103", "0",
			"adam 2026 acme"} {
			var want []string
			for _, sn := range slices.Backward(all) {
				if store.Matches(sn, q) {
					want = append(want, sn.ID)
				}
			}
			for _, limit := range []int{1, 2, 7, 200} {
				var got []string
				for query := (store.Query{Q: q, Limit: limit}); ; {
					page, err := w.Snapshots(w.ctx, adam, query)
					w.ok(err)
					for _, sn := range page.Items {
						got = append(got, sn.ID)
					}
					if query.Cursor = page.Next; page.Next == "" {
						break
					}
				}
				if !slices.Equal(got, want) || len(want) == 0 {
					t.Errorf("%q by %d: %d found, want %d in their order", q, limit, len(got), len(want))
				}
			}
		}
	})
}

// pushNamed pushes a snapshot with a name of its own.
func (w *world) pushNamed(c snap.Caller, target, name string) snap.Snapshot {
	w.t.Helper()
	w.clock.Advance(time.Second)
	u := w.upload(target, snap.TypeSnapshot)
	u.Name = name
	w.ok(w.BeginUpload(w.ctx, c, u))
	sn, err := w.CompleteUpload(w.ctx, c, u)
	w.ok(err)
	return sn
}

// rename signs a user in again under another name.
func (w *world) rename(c snap.Caller, name string) {
	w.t.Helper()
	at, _, _ := strings.Cut(c.User.Email, "@")
	_, err := w.ApplySignIn(w.ctx, store.SignIn{OrgID: c.Org.ID, Issuer: "https://idp.test", Subject: at,
		Email: c.User.Email, Name: name, Role: c.Role})
	w.ok(err)
}

func (w *world) search(c snap.Caller, q store.Query) []snap.Snapshot {
	w.t.Helper()
	page, err := w.Snapshots(w.ctx, c, q)
	w.ok(err)
	return page.Items
}

func sameIDs(a, b []snap.Snapshot) bool {
	ids := func(all []snap.Snapshot) (list []string) {
		for _, sn := range all {
			list = append(list, sn.ID)
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(ids(a), ids(b))
}

func namesOf(all []snap.Snapshot) (names []string) {
	for _, sn := range all {
		names = append(names, sn.Name)
	}
	return names
}

// A query with the beginning of an ID and with words finds only snapshots that match both.
func TestPrefixWithOtherConditions(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		shop, blog := w.push(alice, "shop", snap.TypeSnapshot), w.push(alice, "blog", snap.TypeSnapshot)
		q := store.Query{IDPrefix: snap.IDPrefix}
		if got := w.search(alice, q); !sameIDs(got, []snap.Snapshot{blog, shop}) {
			t.Errorf("the prefix alone finds %v", namesOf(got))
		}
		q.Q = "sho"
		if got := w.search(alice, q); !sameIDs(got, []snap.Snapshot{shop}) {
			t.Errorf("the prefix and a word find %v", namesOf(got))
		}
		if n, _, err := w.Count(w.ctx, alice, q); err != nil || n != 1 {
			t.Errorf("counted %d, %v, want 1", n, err)
		}
	})
}
