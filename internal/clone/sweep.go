package clone

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"snap/internal/disk"
)

// unusedFor is how long a template is kept after the last clone was created from it.
const unusedFor = 7 * 24 * time.Hour

// retryAfter is how long clean-ups pause after one that failed.
const retryAfter = time.Minute

// Swept lists the clones and templates that [Registry.Sweep] dropped.
type Swept struct {
	Clones    []Clone
	Templates []Template
}

// Empty reports whether there are neither templates nor clones.
func (r *Registry) Empty() (bool, error) {
	rec, err := r.read()
	return len(rec.Templates)+len(rec.Clones) == 0, err
}

// Due reports whether Sweep has something to do. It returns false while clean-ups pause after a
// failure. It connects to no database.
func (r *Registry) Due(wanted func(Template) bool) (bool, error) {
	rec, err := r.read()
	if err != nil {
		return false, err
	}
	if since := r.o.Now().Sub(rec.Failed); since >= 0 && since < retryAfter { // the clock may have been set back
		return false, nil
	}
	for _, c := range rec.Clones {
		if r.expired(c) || c.needsProcess() && r.unlocked(c.ID) {
			return true, nil
		}
	}
	for _, t := range rec.Templates {
		if !r.keeps(t, wanted) && (t.Mark != "" || r.unlocked(t.ID)) {
			return true, nil
		}
	}
	return false, nil
}

// expired reports whether a clone has expired. A clone of kind Run never does: it ends with its
// process.
func (r *Registry) expired(c Clone) bool { return c.Kind != Run && !c.Expires.After(r.o.Now()) }

// needsProcess reports whether a clone must belong to a running process. If no process holds its
// lock, it was left behind.
func (c Clone) needsProcess() bool { return c.Kind == Run || c.State != Ready }

// keeps reports whether a template is ready, wanted and recently used.
func (r *Registry) keeps(t Template, wanted func(Template) bool) bool {
	return t.Mark != "" && wanted(t) && r.o.Now().Sub(t.Used) < unusedFor
}

func (r *Registry) unlocked(id string) bool {
	release, free := r.tryLock(id)
	release()
	return free
}

// Sweep drops clones that have expired, databases that killed processes left behind, and templates
// that are not wanted or have not been used for a week. It never touches a database that a running
// process uses. It continues after an error, and returns all errors. A server that does not respond
// does not delay the clean-up of the others.
func (r *Registry) Sweep(ctx context.Context, wanted func(Template) bool) (s Swept, err error) {
	rec, err := r.read()
	if err != nil {
		return s, err
	}
	var mu sync.Mutex // guards s and err
	var servers sync.WaitGroup
	for _, on := range rec.byServer() {
		servers.Go(func() {
			swept, sweepErr := r.sweepServer(ctx, on, wanted)
			mu.Lock()
			defer mu.Unlock()
			s.Clones, s.Templates = append(s.Clones, swept.Clones...), append(s.Templates, swept.Templates...)
			err = errors.Join(err, sweepErr)
		})
	}
	servers.Wait()
	r.sweepLocks()
	interrupted := errors.Is(ctx.Err(), context.Canceled)
	if err != nil && !interrupted || !rec.Failed.IsZero() && err == nil {
		_ = r.change(func(rec *record) error { // if this fails, the next clean-up sets it
			rec.Failed = time.Time{}
			if err != nil {
				rec.Failed = r.o.Now().UTC()
			}
			return nil
		})
	}
	return s, err
}

// byServer returns the templates and clones of each server.
func (rec *record) byServer() map[string]*record {
	all := map[string]*record{}
	on := func(server string) *record {
		if all[server] == nil {
			all[server] = &record{}
		}
		return all[server]
	}
	for _, c := range rec.Clones {
		on(c.Source.Server).Clones = append(on(c.Source.Server).Clones, c)
	}
	for _, t := range rec.Templates {
		on(t.Source.Server).Templates = append(on(t.Source.Server).Templates, t)
	}
	return all
}

// sweepServer does the work of [Registry.Sweep] for the templates and clones of one server.
func (r *Registry) sweepServer(ctx context.Context, on *record, wanted func(Template) bool) (s Swept, err error) {
	for _, c := range on.Clones {
		dropped, sweepErr := r.sweepClone(ctx, c.ID)
		err = errors.Join(err, sweepErr)
		if dropped {
			s.Clones = append(s.Clones, c)
		}
	}
	for _, t := range on.Templates {
		dropped, sweepErr := r.sweepTemplate(ctx, t.ID, wanted)
		err = errors.Join(err, sweepErr)
		if dropped {
			s.Templates = append(s.Templates, t)
		}
	}
	return s, err
}

// sweepClone drops a clone that has expired or was left behind. If a reset was interrupted,
// sweepClone completes the reset instead.
func (r *Registry) sweepClone(ctx context.Context, id string) (dropped bool, err error) {
	rec, err := r.read()
	c := rec.clone(id)
	if err != nil || c == nil || !r.expired(*c) && !c.needsProcess() {
		return false, err
	}
	release, free := r.tryLock(id)
	if !free {
		return false, nil
	}
	defer release()
	rec, err = r.read()
	if c = rec.clone(id); err != nil || c == nil {
		return false, err
	}
	switch {
	case c.State == Resetting && c.Kind != Run && !r.expired(*c):
		return false, r.recover(ctx, *c)
	case r.expired(*c) || c.needsProcess():
		err = r.drop(ctx, *c)
		return err == nil, err
	}
	return false, nil
}

// sweepTemplate drops a template that was left unfinished, is no longer wanted or has not been used
// recently, unless a process holds its lock.
func (r *Registry) sweepTemplate(ctx context.Context, id string, wanted func(Template) bool) (dropped bool, err error) {
	rec, err := r.read()
	t := rec.template(id)
	if err != nil || t == nil || r.keeps(*t, wanted) {
		return false, err
	}
	release, free := r.tryLock(id)
	if !free {
		return false, nil
	}
	defer release()
	rec, err = r.read()
	if t = rec.template(id); err != nil || t == nil || r.keeps(*t, wanted) {
		return false, err
	}
	err = r.dropTemplate(ctx, *t)
	return err == nil, err
}

// sweepLocks removes the lock files of processes that were killed before they added their clone to
// the record.
func (r *Registry) sweepLocks() {
	const minAge = time.Hour // longer than a process takes to add its clone to the record
	files := disk.Glob(r.o.Dir, "*_*.lock")
	rec, err := r.read()
	if err != nil {
		return
	}
	for _, path := range files {
		id := strings.TrimSuffix(filepath.Base(path), ".lock")
		info, err := os.Stat(path)
		if err == nil && rec.clone(id) == nil && rec.template(id) == nil && r.o.Now().Sub(info.ModTime()) > minAge {
			os.Remove(path)
		}
	}
}
