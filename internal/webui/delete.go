package webui

import "net/http"

func (s *Server) confirmDeleteCloud(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	detail := "It is gone at once for everyone who can see it. This cannot be undone."
	if one.Local != nil {
		detail += " Your local copy stays."
	}
	page := confirmPage{Page: s.page("Delete", "/snapshots"), Question: "Delete " + one.Name() + " from the cloud?", Detail: detail, Icon: "trash", Button: "Delete from the cloud", Action: one.Action("delete"), Back: "/snapshots"}
	page.Narrow = true
	return s.show(w, r, "confirm.html", "dialog", page)
}

func (s *Server) deleteCloud(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	if err := s.cloud.client().Delete(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	s.cloud.changed()
	return s.done(w, r, "confirm.html", "gone", "Deleted from the cloud.")
}

// confirmDecline asks before a received snapshot is sent back.
func (s *Server) confirmDecline(w http.ResponseWriter, r *http.Request) error {
	one, err := s.cloudRow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	page := confirmPage{
		Page: s.page("Decline", "/snapshots"), Question: "Decline " + one.Name() + "?",
		Detail: "Nobody in " + one.Me.Organization + " sees it any more, until " + one.Cloud.Organization + " shares it again. Local copies stay.",
		Icon:   "close", Button: "Decline it", Action: one.Action("decline"), Back: "/snapshots",
	}
	page.Narrow = true
	return s.show(w, r, "confirm.html", "dialog", page)
}

func (s *Server) decline(w http.ResponseWriter, r *http.Request) error {
	if err := s.needCloud(); err != nil {
		return err
	}
	if err := s.cloud.client().Decline(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	s.cloud.changed()
	return s.done(w, r, "confirm.html", "gone", "Declined.")
}

func (s *Server) confirmDeleteLocal(w http.ResponseWriter, r *http.Request) error {
	l, err := s.o.Agent.Snapshot(r.PathValue("name"))
	if err != nil {
		return err
	}
	one := row{Local: &l}
	detail := "It is the only copy that is known here. This cannot be undone."
	if l.Cloud[s.cloud.base()] != "" {
		detail = "The copy in the cloud stays."
	}
	page := confirmPage{Page: s.page("Delete", "/snapshots"), Question: "Delete " + l.Name + " from this machine?", Detail: detail, Icon: "trash", Button: "Delete from this machine", Action: one.LocalAction("delete"), Back: "/snapshots"}
	page.Narrow = true
	return s.show(w, r, "confirm.html", "dialog", page)
}

func (s *Server) deleteLocal(w http.ResponseWriter, r *http.Request) error {
	if err := s.o.Agent.DeleteSnapshot(r.PathValue("name")); err != nil {
		return err
	}
	return s.done(w, r, "confirm.html", "gone", "Deleted from this machine.")
}
