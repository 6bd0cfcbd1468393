package webui

import (
	"context"
	"fmt"
	"net/http"

	"snap/internal/local"
	"snap/internal/look"
)

// pull brings a cloud snapshot here; a missing target is created first.
func (s *Server) pull(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	item := one.Cloud
	return s.begin(w, r, "pull", item.Target, "Pull "+item.Name, func(ctx context.Context, p local.Progress) (outcome, error) {
		res, err := s.o.Agent.Pull(ctx, s.cloud.client(), item.Target, local.PullOptions{SnapshotID: item.ID}, p)
		if err != nil {
			return outcome{}, err
		}
		text := fmt.Sprintf("pulled, %s", look.Bytes(res.Snapshot.Size))
		if res.Here {
			text = "it was here already, with the same checksum"
		}
		if res.CreatedTarget {
			text += fmt.Sprintf("; the target %s was created", item.Target)
		}
		return outcome{text: text, snapshot: res.Snapshot.Name}, nil
	})
}

// push brings a local snapshot to the cloud, where it starts private.
func (s *Server) push(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err != nil {
		return err
	}
	return s.begin(w, r, "push", l.Target, "Push "+l.Name, func(ctx context.Context, p local.Progress) (outcome, error) {
		res, err := s.o.Agent.Push(ctx, s.cloud.client(), l.Target, local.PushOptions{Snapshot: l.Name}, p)
		if err != nil {
			return outcome{}, err
		}
		s.cloud.changed()
		if res.Exists {
			return outcome{text: "it was in the cloud already"}, nil
		}
		return outcome{text: fmt.Sprintf("pushed, %s; it is private", look.Bytes(res.Bytes))}, nil
	})
}
