package clone

import (
	"context"
	"errors"
	"fmt"

	"snap"
	"snap/internal/engine"
)

// withTemplate calls f with the template of a request. It creates the template if there is none. No
// process changes or drops the template while f runs. If f finds that somebody changed the
// template's database, withTemplate creates the template again and calls f again.
func (r *Registry) withTemplate(ctx context.Context, q Request,
	f func(cloner engine.Cloner, from string, o engine.CopyOptions) error) (leftOut string, err error) {
	const attempts = 3
	for range attempts {
		t, release, err := r.template(ctx, q)
		if err != nil {
			return "", err
		}
		cloner, url, err := r.locateTemplate(t)
		if err == nil {
			err = f(cloner, url, engine.CopyOptions{Mark: t.Mark, Jobs: max(1, q.Jobs)})
		}
		release()
		if !errors.Is(err, engine.ErrNotSealed) {
			return t.LeftOut, err
		}
		r.o.Log.Warn("a template was changed and is created again", "template", t.ID, "snapshot", t.Source.Snapshot)
		if err := r.invalidate(t); err != nil {
			return "", err
		}
	}
	return "", &snap.Error{Code: snap.CodeConflict,
		Detail: fmt.Sprintf("somebody keeps changing the template of %s", q.Source.Snapshot),
		Hint:   "find out who connects to databases whose names begin with " + engine.ClonePrefix}
}

// template returns the template of a request, and holds a shared lock on it until release is
// called. It creates the template if there is none; other processes that need the template wait
// meanwhile.
func (r *Registry) template(ctx context.Context, q Request) (t Template, release func(), err error) {
	for {
		if t, err = r.registerTemplate(q.Source); err != nil {
			return t, nil, err
		}
		if t.Mark == "" {
			if err := r.createTemplate(ctx, t.ID, q.Load); err != nil {
				return t, nil, err
			}
			continue
		}
		if release, err = r.lockShared(ctx, t.ID); err != nil {
			return t, nil, err
		}
		rec, err := r.read()
		if current := rec.template(t.ID); err == nil && current != nil && current.Mark == t.Mark {
			return t, release, nil
		}
		release()
		if err != nil {
			return t, nil, err
		}
	}
}

// registerTemplate returns the template of a source. It adds one to the record if there is none.
func (r *Registry) registerTemplate(s Source) (t Template, err error) {
	rec, err := r.read()
	if err != nil {
		return t, err
	}
	const fresh = 10 // minutes until the time of the last use is written again
	if found := rec.templateOf(s); found != nil && r.o.Now().Sub(found.Used).Minutes() < fresh {
		return *found, nil
	}
	err = r.change(func(rec *record) error {
		found := rec.templateOf(s)
		if found == nil {
			rec.Templates = append(rec.Templates, Template{ID: "template_" + newID(), Source: s})
			found = &rec.Templates[len(rec.Templates)-1]
		}
		found.Used = r.o.Now().UTC()
		t = *found
		return nil
	})
	return t, err
}

// createTemplate fills and seals a template, unless another process has done so or has removed it.
func (r *Registry) createTemplate(ctx context.Context, id string, load Load) error {
	release, err := r.lock(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	rec, err := r.read()
	if err != nil {
		return err
	}
	t := rec.template(id)
	if t == nil || t.Mark != "" {
		return nil
	}
	if err := r.fillTemplate(ctx, t, load); err != nil {
		return errors.Join(err, r.dropTemplate(context.WithoutCancel(ctx), *t))
	}
	return r.change(func(rec *record) error {
		if entry := rec.template(id); entry != nil {
			entry.Mark, entry.LeftOut = t.Mark, t.LeftOut
		}
		return nil
	})
}

// fillTemplate loads a template's database and sets its mark. It first drops a database that
// somebody changed or that a killed process left.
func (r *Registry) fillTemplate(ctx context.Context, t *Template, load Load) error {
	cloner, url, err := r.locateTemplate(*t)
	if err == nil {
		err = cloner.CheckCanClone(ctx, url)
	}
	if err == nil {
		err = cloner.Drop(ctx, url)
	}
	if err == nil {
		t.LeftOut, err = load(ctx, url)
	}
	if err == nil {
		t.Mark, err = cloner.Seal(ctx, url)
	}
	return err
}

// invalidate records that a template must be created again.
func (r *Registry) invalidate(t Template) error {
	return r.change(func(rec *record) error {
		if current := rec.template(t.ID); current != nil && current.Mark == t.Mark {
			current.Mark = ""
		}
		return nil
	})
}

// dropTemplate drops a template's database and removes the template from the record. The caller
// holds its lock.
func (r *Registry) dropTemplate(ctx context.Context, t Template) error {
	cloner, url, err := r.locateTemplate(t)
	if err == nil {
		err = cloner.Drop(ctx, url)
	}
	if cleaner, ok := cloner.(engine.Cleaner); ok && err == nil && t.Mark == "" {
		_, err = cleaner.RemoveLeftovers(ctx, url) // removes the remains of an interrupted load
	}
	if err != nil {
		return err
	}
	return r.forget(t.ID)
}

// DropTemplate drops a template unless a process is copying it. The next clone creates it again.
func (r *Registry) DropTemplate(ctx context.Context, t Template) (dropped bool, err error) {
	return r.sweepTemplate(ctx, t.ID, func(Template) bool { return false })
}

func (r *Registry) locateTemplate(t Template) (engine.Cloner, string, error) {
	return r.locate(Clone{ID: t.ID, Source: t.Source})
}

// Templates returns the templates that are ready.
func (r *Registry) Templates() (ready []Template, err error) {
	rec, err := r.read()
	for _, t := range rec.Templates {
		if t.Mark != "" {
			ready = append(ready, t)
		}
	}
	return ready, err
}

// ClonesOf returns the number of clones with a template's content, without the warm ones.
func (r *Registry) ClonesOf(t Template) (n int, err error) {
	rec, err := r.read()
	for _, c := range rec.Clones {
		if c.Source.same(t.Source) && c.Kind != Warm {
			n++
		}
	}
	return n, err
}
