package webui

import "net/http"

func (s *Server) confirmDeleteCloud(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.ask(w, r, confirmPage{
		Page: s.page(titleDelete, "/snapshots"), Question: deleteCloudQuestion(one.Name()),
		Detail: deleteCloudDetails(one.Local != nil),
		Icon:   "trash", Button: buttonDeleteCloud, Action: one.Action("delete"), Back: "/snapshots",
	})
}

func (s *Server) deleteCloud(w http.ResponseWriter, r *http.Request) error {
	if err := s.cloud.client().Delete(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	s.cloud.changed()
	return s.done(w, r, "confirm.html", "gone", textDeletedCloud)
}

// confirmDecline asks for confirmation before a received snapshot is declined.
func (s *Server) confirmDecline(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.ask(w, r, confirmPage{
		Page: s.page(titleDecline, "/snapshots"), Question: declineQuestion(one.Name()),
		Detail: declineDetails(one.Me.Organization, one.Cloud.Organization),
		Icon:   "close", Button: buttonDecline, Action: one.Action("decline"), Back: "/snapshots",
	})
}

func (s *Server) decline(w http.ResponseWriter, r *http.Request) error {
	if err := s.cloud.client().Decline(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	s.cloud.changed()
	return s.done(w, r, "confirm.html", "gone", textDeclined)
}

func (s *Server) confirmDeleteLocal(w http.ResponseWriter, r *http.Request) error {
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err != nil {
		return err
	}
	one := row{Local: &l}
	cloudStays := false
	if id := l.Cloud[s.cloud.base()]; id != "" {
		_, err := s.cloud.client().Snapshot(r.Context(), id)
		cloudStays = err == nil
	}
	return s.ask(w, r, confirmPage{
		Page: s.page(titleDelete, "/snapshots"), Question: deleteLocalQuestion(l.Name),
		Detail: deleteLocalDetails(cloudStays),
		Icon:   "trash", Button: buttonDeleteLocal, Action: one.LocalAction("delete"), Back: "/snapshots",
	})
}

func (s *Server) deleteLocal(w http.ResponseWriter, r *http.Request) error {
	if err := s.o.Agent.DeleteSnapshot(r.PathValue("name")); err != nil {
		return err
	}
	return s.done(w, r, "confirm.html", "gone", textDeletedLocal)
}
