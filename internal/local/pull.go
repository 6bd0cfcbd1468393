package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"snap"
	"snap/api"
	"snap/internal/transfer"
)

// PullOptions select what to pull. SnapshotID is an ID or a prefix of one. Without it, Pull takes
// the newest snapshot of the target and type that the user has access to. Type "" is any type.
type PullOptions struct {
	SnapshotID string
	Type       snap.Type
	Jobs       int  // concurrent connections; 0: a default
	Full       bool // pull the whole file, never a delta
}

// PullResult is the result of [Agent.Pull].
type PullResult struct {
	Snapshot      Snapshot
	ID            string // in the cloud
	Here          bool   // the snapshot was already on this machine
	CreatedTarget bool   // the target was not in the configuration
	Unsaved       error  // why the missing target could not be saved; the pull succeeded regardless
	Moved         int64  // bytes transferred, including those of a delta
}

// Pull downloads a cloud snapshot through a presigned URL (SPEC 4.4). It first creates the target
// if it is missing; if the configuration is not writable, it still pulls the snapshot. An
// interrupted pull resumes where it stopped. If a local snapshot has the same checksum, Pull keeps
// it and transfers no bytes. If a different one has the same name, in any target, Pull keeps it too
// and appends -2 to the new one's name.
func (a *Agent) Pull(ctx context.Context, c *api.Client, target string, o PullOptions, p Progress) (PullResult, error) {
	target, err := snap.CleanTarget(target)
	if err != nil {
		return PullResult{}, err
	}
	wanted, err := wantedFrom(ctx, c, target, o)
	if err != nil {
		return PullResult{}, err
	}
	result := PullResult{ID: wanted.ID}
	if err = a.ensureTarget(&result, target); err != nil {
		return result, err
	}
	options := a.options(c, o.Jobs, p.bytes("pull"))
	from := offer{Snapshot: wanted, from: fromCloud(wanted, c.BaseURL())}
	if !o.Full {
		from.delta = func(path string) (pulledDelta, error) { return a.pullDelta(ctx, c, wanted, path, options) }
	}
	s, here, moved, err := a.fetch(ctx, c, wanted.ID, from, options)
	result.Snapshot, result.Here, result.Moved = s, here, moved
	if err != nil {
		return result, err
	}
	if !here {
		// This call is for the service's audit log. The snapshot is complete even if it fails.
		if err := c.Pulled(ctx, wanted.ID, moved); err != nil {
			a.log.Warn("could not report the end of the pull to the service", "error", err)
		}
	}
	if s.Pulled {
		if s.PulledAs, err = callerOf(ctx, c); err != nil {
			a.log.Warn("could not record who pulled the snapshot", "error", err)
		}
	}
	result.Snapshot, err = a.noteCloud(s, c.BaseURL(), wanted.ID)
	return result, err
}

// offer is a snapshot that can be pulled, and its provenance.
type offer struct {
	api.Snapshot
	from  Provenance
	delta func(path string) (pulledDelta, error) // makes the file from a delta; may be nil
}

// fetch finds a snapshot on this machine, or downloads it and adds it to the listing. It does not
// yet write the record of a snapshot that was already here.
func (a *Agent) fetch(ctx context.Context, c transfer.Service, id string, wanted offer,
	o transfer.Options) (s Snapshot, here bool, moved int64, err error) {
	s, here, err = a.recordFor(ctx, wanted)
	if err != nil || here {
		s.Arrived = a.now().UTC() // load prefers the snapshot pulled most recently
		if s.From.Origin == Unknown {
			s.From = wanted.from
		}
		return s, here, 0, err
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return s, false, 0, diskError(err, "create the folder of the target's snapshots")
	}
	if wanted.delta != nil && wanted.Size >= minDeltaFile {
		got, failed := wanted.delta(s.Path)
		if failed != nil {
			got, err = pulledDelta{}, transfer.Interrupted(ctx, "the pull", a.fallBack(ctx, failed))
		}
		moved, s.Certificate = got.fetched, got.certificate
	}
	if err == nil && moved == 0 {
		var got api.PullResponse
		got, moved, err = transfer.Download(ctx, c, id, s.Path, o)
		s.Certificate = got.Certificate
	}
	if err == nil {
		path := s.Path
		if s, err = a.adopt(ctx, s); snap.CodeOf(err) == snap.CodeCorrupt {
			err = errors.Join(err, os.Remove(path)) // so that a corrected snapshot can have its name
		}
	}
	if err == nil {
		a.abandonedDownloads(filepath.Dir(s.Path), true)
	}
	return s, false, moved, err
}

// wantedFrom returns the cloud snapshot that the options select.
func wantedFrom(ctx context.Context, c *api.Client, target string, o PullOptions) (api.Snapshot, error) {
	if o.SnapshotID == "" {
		return newestFrom(ctx, c, target, o.Type)
	}
	s, err := c.Resolve(ctx, o.SnapshotID)
	switch {
	case err != nil:
		return api.Snapshot{}, err
	case s.Target != target:
		return api.Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s belongs to the target %q", s.ID, s.Target),
			fmt.Sprintf("run `snapcli pull %s --cloud --snapshot-id %s`", snap.ShellWord(s.Target), s.ID))
	case o.Type != "" && s.Type != o.Type:
		return api.Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of type %s", s.ID, s.Type),
			"omit --type")
	}
	return s, nil
}

// newestFrom returns the newest cloud snapshot of a target that the user has access to. It never
// substitutes another type for the requested one.
func newestFrom(ctx context.Context, c *api.Client, target string, typ snap.Type) (api.Snapshot, error) {
	page, err := c.Snapshots(ctx, api.ListOptions{Target: target, Type: typ, Limit: 1})
	if err != nil {
		return api.Snapshot{}, err
	}
	if len(page.Items) == 0 {
		kind := "snapshot"
		if typ != "" {
			kind = "snapshot of type " + string(typ)
		}
		return api.Snapshot{}, &snap.Error{
			Code:   snap.CodeNotFound,
			Detail: fmt.Sprintf("there is no %s of target %q in the cloud that you may see", kind, target),
			Hint:   "list the snapshots that you can see: `snapcli cloud snapshots`",
		}
	}
	return page.Items[0], nil
}

// ensureTarget creates the target if the configuration lacks it, and records in r whether it could
// be saved.
func (a *Agent) ensureTarget(r *PullResult, name string) error {
	if _, err := a.Target(name); !errors.Is(err, snap.ErrNotFound) {
		return err
	}
	err := a.file.editTarget(name, func(old *Target) (*Target, error) {
		if old != nil {
			return nil, errTargetExists // another process has added it
		}
		return &Target{}, nil
	})
	if errors.Is(err, errTargetExists) {
		return nil
	}
	if snap.CodeOf(err) == snap.CodeUsage {
		return err
	}
	r.CreatedTarget, r.Unsaved = err == nil, err
	return nil
}

var errTargetExists = errors.New("the target exists")

// recordFor returns the record of the local copy, and true. If there is none, it returns a record
// for a new copy with an unused name, and false. It removes a copy whose bytes have changed. The
// new copy's file may already exist without a record, if a pull was killed just before it finished.
// The download then verifies and reuses that file.
func (a *Agent) recordFor(ctx context.Context, wanted offer) (s Snapshot, here bool, err error) {
	local, err := a.Snapshots("")
	if err != nil {
		return Snapshot{}, false, err
	}
	taken := map[string]bool{}
	for _, s := range local {
		if s.Target != wanted.Target || s.SHA256 != wanted.SHA256 {
			taken[s.Name] = true
			continue
		}
		err := transfer.Verify(ctx, s.Path, wanted.Snapshot)
		if snap.CodeOf(err) != snap.CodeConflict {
			return s, err == nil, err
		}
		a.log.Warn("the local copy of a snapshot has changed and will be fetched again", "path", s.Path)
		return s, false, diskError(os.Remove(s.Path), "remove the damaged copy")
	}
	s = Snapshot{
		Target: wanted.Target, Name: wanted.Name, Type: wanted.Type, Engine: wanted.Engine,
		Size: wanted.Size, SHA256: wanted.SHA256, Created: wanted.Created, Pulled: true, From: wanted.from,
	}
	for n := 2; taken[s.Name]; n++ {
		s.Name = fmt.Sprintf("%s-%d", wanted.Name, n)
	}
	s.Path, err = a.snapshotFile(s.Target, s.Name)
	return s, false, err
}
