package clone

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// unusedFor is how long a template is kept after the last clone was made from it.
const unusedFor = 7 * 24 * time.Hour

// pause is how long clean-ups wait after one that failed.
const pause = time.Minute

// Swept lists the results of [Registry.Sweep].
type Swept struct {
	Clones    []Clone
	Templates []Template
}

// Empty reports whether there are neither templates nor clones.
func (r *Registry) Empty() (bool, error) {
	b, err := r.read()
	return len(b.Templates)+len(b.Clones) == 0, err
}

// Due reports whether Sweep has something to do. It connects to no database.
func (r *Registry) Due(wanted func(Template) bool) (bool, error) {
	b, err := r.read()
	if err != nil || r.o.Now().Sub(b.Failed) < pause {
		return false, err
	}
	for _, c := range b.Clones {
		if r.expired(c) || c.needsProcess() && r.unlocked(c.ID) {
			return true, nil
		}
	}
	for _, t := range b.Templates {
		if t.Mark == "" && r.unlocked(t.ID) || t.Mark != "" && !(wanted(t) && r.recentlyUsed(t)) {
			return true, nil
		}
	}
	return false, nil
}

// expired reports whether a clone has expired. Only its lock shows whether it is still in use.
func (r *Registry) expired(c Clone) bool { return c.Kind != Run && !c.Expires.After(r.o.Now()) }

// needsProcess reports whether a clone belongs to a running process. If nobody holds its lock, it was left behind.
func (c Clone) needsProcess() bool { return c.Kind == Run || c.State != Ready }

func (r *Registry) recentlyUsed(t Template) bool { return r.o.Now().Sub(t.Used) < unusedFor }

func (r *Registry) unlocked(id string) bool {
	release, free := r.tryLock(id)
	release()
	return free
}

// Sweep drops clones that have expired, what killed processes left, and templates that are not
// wanted or have not been used for a week. It never touches what a running process uses. It
// continues after an error, and returns all of them.
func (r *Registry) Sweep(ctx context.Context, wanted func(Template) bool) (s Swept, err error) {
	b, err := r.read()
	if err != nil {
		return s, err
	}
	for _, c := range b.Clones {
		dropped, failed := r.sweepClone(ctx, c.ID)
		err = errors.Join(err, failed)
		if dropped {
			s.Clones = append(s.Clones, c)
		}
	}
	for _, t := range b.Templates {
		dropped, failed := r.sweepTemplate(ctx, t.ID, wanted)
		err = errors.Join(err, failed)
		if dropped {
			s.Templates = append(s.Templates, t)
		}
	}
	r.sweepLocks()
	if err != nil && ctx.Err() == nil || !b.Failed.IsZero() && err == nil {
		_ = r.change(func(b *record) error { // if this fails, the next clean-up writes it
			b.Failed = time.Time{}
			if err != nil {
				b.Failed = r.o.Now().UTC()
			}
			return nil
		})
	}
	return s, err
}

// sweepClone drops a clone that has expired or was left behind, and completes a reset.
func (r *Registry) sweepClone(ctx context.Context, id string) (dropped bool, err error) {
	b, err := r.read()
	c := b.clone(id)
	if err != nil || c == nil || !r.expired(*c) && !c.needsProcess() {
		return false, err
	}
	release, free := r.tryLock(id)
	if !free {
		return false, nil
	}
	defer release()
	b, err = r.read()
	if c = b.clone(id); err != nil || c == nil {
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

// sweepTemplate drops a template that was left unfinished or is no longer wanted.
func (r *Registry) sweepTemplate(ctx context.Context, id string, wanted func(Template) bool) (dropped bool, err error) {
	b, err := r.read()
	t := b.template(id)
	if err != nil || t == nil || t.Mark != "" && wanted(*t) && r.recentlyUsed(*t) {
		return false, err
	}
	release, free := r.tryLock(id)
	if !free {
		return false, nil
	}
	defer release()
	b, err = r.read()
	if t = b.template(id); err != nil || t == nil || t.Mark != "" && wanted(*t) && r.recentlyUsed(*t) {
		return false, err
	}
	err = r.dropTemplate(ctx, *t)
	return err == nil, err
}

// sweepLocks removes the lock files of processes that were killed before they added their clone to the
// record.
func (r *Registry) sweepLocks() {
	const starting = time.Hour // longer than a process takes to add its clone to the record
	files, _ := filepath.Glob(filepath.Join(r.o.Dir, "*_*.lock"))
	b, err := r.read()
	if err != nil {
		return
	}
	for _, path := range files {
		id := strings.TrimSuffix(filepath.Base(path), ".lock")
		info, err := os.Stat(path)
		if err == nil && b.clone(id) == nil && b.template(id) == nil && r.o.Now().Sub(info.ModTime()) > starting {
			os.Remove(path)
		}
	}
}
