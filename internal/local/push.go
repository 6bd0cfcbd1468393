package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/transfer"
)

// PushOptions select what to push. Without a name, Push takes the newest snapshot of the target and
// type that was built or sanitized here. Type "" is any type. A pulled snapshot is pushed only by
// its name.
type PushOptions struct {
	Snapshot string
	Type     snap.Type
	Chosen   func(Snapshot) // called with the chosen snapshot if none was named; may be nil
	Jobs     int            // concurrent connections; 0: a default
	Full     bool           // push the whole file, never a delta
	Card     CardChoice     // how much of the snapshot's card is published
	Identity []string       // files of private keys that open an encrypted snapshot, to read its card
}

// PushResult is the result of [Agent.Push].
type PushResult struct {
	ID     string // in the cloud
	Name   string
	Bytes  int64 // of the snapshot
	Moved  int64 // bytes transferred
	Exists bool  // the cloud already had the snapshot; nothing was sent

	Base      string // name of the snapshot that the pushed delta starts from; empty if no delta was pushed
	Unchanged bool   // the data equals that of Base
	Elapsed   time.Duration
}

// Push uploads a local snapshot to the cloud, where it is private unless a channel shares it (SPEC
// 3). An interrupted push resumes where it stopped. For a snapshot that is already there, no bytes
// are transferred.
func (a *Agent) Push(ctx context.Context, c *api.Client, target string, o PushOptions, p Progress) (PushResult, error) {
	started := a.now()
	s, err := a.chosen(target, o)
	if err != nil {
		return PushResult{}, err
	}
	described, err := a.card(s, o)
	if err != nil {
		return PushResult{}, err
	}
	options := a.options(c, o.Jobs, p.bytes("push"))
	var sent *sentDelta
	if !o.Full {
		if sent, err = a.pushDelta(ctx, c, s, options, p); err != nil {
			return PushResult{}, transfer.Interrupted(ctx, "the push", err)
		}
	}
	done, err := transfer.Upload(ctx, c, s.Path, pushOf(s), options)
	if err != nil {
		return PushResult{}, err
	}
	if err := a.publish(ctx, c, s, done, sent, described, o, p); err != nil {
		return PushResult{}, err
	}
	result := PushResult{ID: done.ID, Name: s.Name, Bytes: s.Size, Moved: done.Moved, Exists: done.Exists}
	if sent != nil {
		result.Moved += sent.Size
		result.Exists, result.Base, result.Unchanged = false, sent.base.Name, sent.Same
	}
	result.Elapsed = a.now().Sub(started)
	return result, nil
}

// options returns the options for a transfer with the service. With an https service, nothing is
// sent unencrypted unless the configuration allows it. Only a service on this machine may use an
// object store on this machine.
func (a *Agent) options(c *api.Client, jobs int, progress transfer.Progress) transfer.Options {
	roots, _ := a.Roots() // creating the client has already reported the error
	plain := a.Config().Cloud.PlainStorage || strings.HasPrefix(c.BaseURL(), "http:")
	return transfer.Options{Jobs: jobs, Progress: progress, Plain: plain, Remote: !c.OnLoopback(), Roots: roots}
}

// pushOf returns the push request for a snapshot.
func pushOf(s Snapshot) api.PushRequest {
	return api.PushRequest{Target: s.Target, Name: s.Name, Type: s.Type, Engine: s.Engine, Size: s.Size,
		SHA256: s.SHA256, Certificate: s.Certificate}
}

// chosen returns the named local snapshot of a target, or the newest one made here.
func (a *Agent) chosen(target string, o PushOptions) (Snapshot, error) {
	target, err := snap.CleanTarget(target)
	if err != nil {
		return Snapshot{}, err
	}
	if o.Snapshot == "" {
		s, err := a.newestOwn(target, o.Type)
		if err == nil && o.Chosen != nil {
			o.Chosen(s)
		}
		if errors.Is(err, snap.ErrNotFound) {
			if _, unknown := a.Target(target); unknown != nil {
				return Snapshot{}, unknown
			}
		}
		return s, err
	}
	s, err := a.Snapshot(o.Snapshot)
	switch {
	case err != nil:
		return Snapshot{}, err
	case s.Target != target:
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s belongs to the target %q", s.Name, s.Target),
			fmt.Sprintf("use the target %s instead of %s", snap.ShellWord(s.Target), snap.ShellWord(target)))
	case o.Type != "" && s.Type != o.Type:
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of type %s", s.Name, s.Type), "omit --type")
	}
	return s, nil
}
