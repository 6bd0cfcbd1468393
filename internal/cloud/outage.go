package cloud

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"snap"
	"snap/internal/store"
)

// repeatOutage is how often the log reports that an outage continues.
const repeatOutage = time.Minute

// outages writes the log lines about parts of the service that fail repeatedly: one line when an
// outage begins, one a minute while it lasts, and one when it is over. It is safe for concurrent
// use.
type outages struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	open map[string]*outage
}

// outage describes one part that does not work at present.
type outage struct {
	since, logged time.Time
	failures      int
}

func newOutages(log *slog.Logger, now func() time.Time) *outages {
	return &outages{log: log, now: now, open: map[string]*outage{}}
}

// database is the name under which an outage of the database is reported, whichever part notices
// it.
const database = "database"

// failed reports an error of the part with this name. Errors that mean that the database is
// unavailable count as one outage for all parts. An error of the object store, which is a
// *snap.Error, is not one of them, even if its cause is an error of the network.
func (o *outages) failed(ctx context.Context, what string, err error) {
	if _, known := errors.AsType[*snap.Error](err); !known && store.Unavailable(err) {
		what = database
	}
	now := o.now()
	o.mu.Lock()
	at := o.open[what]
	begins := at == nil
	if begins {
		at = &outage{since: now}
		o.open[what] = at
	}
	at.failures++
	logs, count := begins || now.Sub(at.logged) >= repeatOutage, at.failures
	if logs {
		at.logged = now
	}
	o.mu.Unlock()
	switch {
	case begins:
		o.log.WarnContext(ctx, "a part of the service fails and is tried again", "what", what, "error", err)
	case logs:
		o.log.WarnContext(ctx, "a part of the service still fails", "what", what, "failures", count,
			"since", at.since.UTC(), "error", err)
	}
}

// worked reports that the part with this name works.
func (o *outages) worked(ctx context.Context, what string) {
	o.mu.Lock()
	at := o.open[what]
	delete(o.open, what)
	o.mu.Unlock()
	if at != nil {
		o.log.InfoContext(ctx, "a part of the service works again", "what", what, "failures", at.failures,
			"after", o.now().Sub(at.since).Round(time.Millisecond))
	}
}
