package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/profile"
	"snap/internal/transfer"
)

// PushProfile pushes a local snapshot to a storage profile, as [Agent.Push] does to the cloud: in
// parts that are verified, and an interrupted push can be resumed. Name "" selects the only
// profile. The result's ID is the snapshot's name.
func (a *Agent) PushProfile(ctx context.Context, name, target string, o PushOptions, p Progress) (PushResult, error) {
	started := a.now()
	s, err := a.chosen(target, o)
	if err != nil {
		return PushResult{}, err
	}
	store, _, err := a.profile(ctx, name)
	if err != nil {
		return PushResult{}, err
	}
	var stored *sentDelta
	if !o.Full {
		if stored, err = a.storeDelta(ctx, store, s, p); err != nil {
			return PushResult{}, transfer.Interrupted(ctx, "the push", err)
		}
	}
	done, err := transfer.Upload(ctx, store, s.Path, pushOf(s),
		transfer.Options{Jobs: o.Jobs, Progress: p.bytes("push"), HTTP: store.HTTP(), Plain: true})
	result := PushResult{ID: s.Name, Name: s.Name, Bytes: s.Size, Moved: done.Moved, Exists: done.Exists}
	if stored != nil {
		result.Moved += stored.Size
		result.Base, result.Unchanged = stored.base.Name, stored.Same
	}
	result.Elapsed = a.now().Sub(started)
	return result, err
}

// PullProfile pulls a snapshot from a storage profile, as [Agent.Pull] does from the cloud. The
// options' SnapshotID is a snapshot's name or a prefix of it.
func (a *Agent) PullProfile(ctx context.Context, name, target string, o PullOptions, p Progress) (PullResult, error) {
	target, err := snap.CleanTarget(target)
	if err != nil {
		return PullResult{}, err
	}
	store, name, err := a.profile(ctx, name)
	if err != nil {
		return PullResult{}, err
	}
	wanted, err := wantedOf(ctx, store, target, o)
	if err != nil {
		return PullResult{}, err
	}
	result := PullResult{ID: wanted.ID}
	if err = a.ensureTarget(&result, target); err != nil {
		return result, err
	}
	options := transfer.Options{Jobs: o.Jobs, Progress: p.bytes("pull"), HTTP: store.HTTP(), Plain: true}
	from := offer{Snapshot: wanted, from: Provenance{Origin: Ours, Profile: name}}
	if !o.Full {
		from.delta = func(path string) (pulledDelta, error) {
			return a.pullStoredDelta(ctx, store, wanted, path, options)
		}
	}
	result.Snapshot, result.Here, result.Moved, err = a.fetch(ctx, store, store.ID(wanted), from, options)
	if err == nil && result.Here {
		err = a.writeRecord(result.Snapshot)
	}
	return result, err
}

// wantedOf returns the snapshot that the options select from a profile.
func wantedOf(ctx context.Context, store *profile.Profile, target string, o PullOptions) (api.Snapshot, error) {
	all, err := store.Snapshots(ctx, target)
	if err != nil {
		return api.Snapshot{}, err
	}
	all = slices.DeleteFunc(all, func(s api.Snapshot) bool {
		return o.Type != "" && s.Type != o.Type || !strings.HasPrefix(s.Name, o.SnapshotID)
	})
	exact := slices.IndexFunc(all, func(s api.Snapshot) bool { return s.Name == o.SnapshotID })
	switch {
	case exact >= 0:
		return all[exact], nil
	case len(all) == 0:
		return api.Snapshot{}, &snap.Error{
			Code:   snap.CodeNotFound,
			Detail: fmt.Sprintf("the storage profile has no such snapshot of target %q", target),
			Hint:   "push one first, or add --cloud to pull from the cloud service",
		}
	case o.SnapshotID != "" && len(all) > 1:
		return api.Snapshot{}, snap.Usage(fmt.Sprintf("%d snapshots begin with %q", len(all), o.SnapshotID),
			"type more of the name")
	}
	return all[0], nil
}

// profile opens the named storage profile, or the only one if name is "", and returns its name.
func (a *Agent) profile(ctx context.Context, name string) (*profile.Profile, string, error) {
	profiles := a.Config().StorageProfiles
	names := slices.Sorted(maps.Keys(profiles))
	switch {
	case len(names) == 0:
		return nil, "", snap.Usage("no storage profile is configured",
			"add --cloud for the cloud service, or add a profile under storage_profiles: `snapcli config edit`")
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return nil, "", snap.Usage("there are several storage profiles",
			"name one with --profile: "+strings.Join(names, ", "))
	}
	chosen, ok := profiles[name]
	if !ok {
		return nil, "", &snap.Error{Code: snap.CodeNotFound,
			Detail: fmt.Sprintf("there is no storage profile %q", name),
			Hint:   "the profiles are: " + strings.Join(names, ", ")}
	}
	rawURL, err := expandURL(chosen.URL, a.env)
	if err != nil {
		return nil, "", err
	}
	p, err := profile.Open(ctx, rawURL, a.now)
	return p, name, err
}
