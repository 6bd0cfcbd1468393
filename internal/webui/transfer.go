package webui

import (
	"context"
	"net/http"

	"snap/internal/local"
)

// pull downloads a cloud snapshot. It creates the target if it is missing.
func (s *Server) pull(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	item := one.Cloud
	return s.begin(w, r, "pull", item.Target, jobPull(item.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			res, err := s.o.Agent.Pull(ctx, s.cloud.client(), item.Target, local.PullOptions{SnapshotID: item.ID}, p)
			if err != nil {
				return outcome{}, err
			}
			text := endPull(res.Snapshot.Size)
			if res.Here {
				text = endAlreadyHere
			}
			if res.CreatedTarget {
				text += alsoTarget(item.Target)
			}
			if res.Unsaved != nil {
				text += unsavedTarget(item.Target, res.Unsaved)
			}
			return outcome{text: text, snapshot: res.Snapshot.Name}, nil
		})
}

// push uploads a local snapshot, which is private unless a channel shares it.
func (s *Server) push(w http.ResponseWriter, r *http.Request) error {
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.begin(w, r, "push", l.Target, jobPush(l.Name),
		func(ctx context.Context, p local.Progress) (outcome, error) {
			res, err := s.o.Agent.Push(ctx, s.cloud.client(), l.Target, local.PushOptions{Snapshot: l.Name}, p)
			if err != nil {
				return outcome{}, err
			}
			s.cloud.changed()
			if res.Exists {
				return outcome{text: endAlreadyCloud}, nil
			}
			return outcome{text: endPush(res.Bytes)}, nil
		})
}
