package webui

import (
	"context"
	"sync"
	"time"

	"snap"
	"snap/api"
)

// cloud is the service as the pages use it: the client, and short-lived caches of data that rarely
// changes between two clicks. No permission is decided from a cache: the service checks permissions
// at every request.
type cloud struct {
	conn *api.Client // nil if no cloud service is configured
	now  func() time.Time

	mu     sync.Mutex
	me     remembered[api.Me]
	groups remembered[[]api.Group]
	people remembered[[]api.Member]
	known  remembered[[]string]
	counts map[query]remembered[totals]
}

type remembered[T any] struct {
	value T
	until time.Time
}

func newCloud(c *api.Client, now func() time.Time) *cloud {
	return &cloud{conn: c, now: now, counts: map[query]remembered[totals]{}}
}

// client returns the client. Call it only if configured returned true.
func (c *cloud) client() *api.Client { return c.conn }

// base returns the service's URL as recorded in local snapshots, or "" if no service is configured.
func (c *cloud) base() string {
	if !c.configured() {
		return ""
	}
	return c.client().BaseURL()
}

// configured reports whether there is a cloud service.
func (c *cloud) configured() bool { return c.client() != nil }

// whoami returns the caller, cached for some seconds.
func (c *cloud) whoami(ctx context.Context) (api.Me, error) {
	if !c.configured() {
		return api.Me{}, errNoCloud()
	}
	return remember(c, &c.me, 10*time.Second, func() (api.Me, error) { return c.client().Me(ctx) })
}

// cachedMe returns the last known caller, however old.
func (c *cloud) cachedMe() api.Me {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.me.value
}

// ssoGroups returns the organization's groups, cached for up to a minute.
func (c *cloud) ssoGroups(ctx context.Context) ([]api.Group, error) {
	return remember(c, &c.groups, time.Minute, func() ([]api.Group, error) { return c.client().Groups(ctx) })
}

// members returns the organization's members, cached for up to a minute.
func (c *cloud) members(ctx context.Context) ([]api.Member, error) {
	return remember(c, &c.people, time.Minute, func() ([]api.Member, error) { return c.client().Members(ctx) })
}

// sharedWith returns the organizations with which somebody shared before, cached for up to a
// minute.
func (c *cloud) sharedWith(ctx context.Context) ([]string, error) {
	return remember(c, &c.known, time.Minute, func() ([]string, error) { return c.client().SharedWith(ctx) })
}

// cachedTotals returns the cached totals of a query. If there are none, or they are older than
// countLife, it calls ask and caches the result.
func (c *cloud) cachedTotals(q query, ask func() (totals, error)) (totals, error) {
	c.mu.Lock()
	one := c.counts[q]
	c.mu.Unlock()
	var err error
	one.value, err = remember(c, &one, countLife, ask)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.counts) > 50 {
		clear(c.counts)
	}
	if err == nil {
		c.counts[q] = one
	}
	return one.value, err
}

// changed drops the cached counts and the result of sharedWith after a change made here.
func (c *cloud) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
	c.known = remembered[[]string]{}
}

// forget drops everything cached.
func (c *cloud) forget() {
	c.changed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.me, c.groups, c.people = remembered[api.Me]{}, remembered[[]api.Group]{}, remembered[[]api.Member]{}
}

// remember returns the cached value. If it is older than life, remember gets and caches a new one.
func remember[T any](c *cloud, cache *remembered[T], life time.Duration, get func() (T, error)) (T, error) {
	c.mu.Lock()
	cached := *cache
	c.mu.Unlock()
	if c.now().Before(cached.until) {
		return cached.value, nil
	}
	value, err := get()
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*cache = remembered[T]{value: value, until: c.now().Add(life)}
	return value, nil
}

// may reports whether the service would allow this caller an action on a listed snapshot, or an
// action without a snapshot if s is the zero value. It applies the domain's own rule and is used
// only to decide what to display.
func may(me api.Me, do snap.Action, s api.Snapshot) bool {
	mine := snap.OrgRef{ID: 1}
	of := mine
	if s.Received || s.Organization != me.Organization {
		of.ID = 2
	}
	caller := snap.Caller{Org: mine, Role: me.Role,
		Credential: snap.Credential{Kind: me.Credential.Kind, Scopes: me.Credential.Scopes}}
	record := snap.Snapshot{Org: of}
	if me.Email != "" {
		caller.User = &snap.User{ID: 1}
	}
	if s.Owner != "" && s.Owner == me.Email {
		record.Owner = caller.User
	}
	return snap.Allowed(caller, do, record) == nil
}
