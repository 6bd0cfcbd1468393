package scim

import (
	"net/http"

	"snap"
	"snap/internal/store"
)

// errNoResource is returned for an ID that no resource of the organization has. It does not reveal
// whether another organization has such a resource.
var errNoResource = &snap.Error{Code: snap.CodeNotFound, Detail: "the organization has no such resource"}

func (h *handler) listGroups(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	p, start, err := pageOf(r, "id", "externalid", "displayname", "members", "members.value")
	if err != nil {
		return err
	}
	members := wantsMembers(r)
	found, total, err := h.Store.SCIMGroups(r.Context(), by.Caller.Org.ID, p, members)
	if err != nil {
		return err
	}
	var items []group
	for _, g := range found {
		items = append(items, h.group(g, members))
	}
	return writeList(w, items, total, start)
}

func (h *handler) getGroup(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	return h.writeGroup(w, r, by, r.PathValue("id"), http.StatusOK)
}

// writeGroup responds with the current state of a group.
func (h *handler) writeGroup(w http.ResponseWriter, r *http.Request, by store.Reporter, id string, status int) error {
	members := wantsMembers(r)
	found, _, err := h.Store.SCIMGroups(r.Context(), by.Caller.Org.ID, store.SCIMPage{ID: id, Limit: 1}, members)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errNoResource
	}
	out := h.group(found[0], members)
	if status == http.StatusCreated {
		w.Header().Set("Location", out.Meta.Location)
	}
	writeJSON(w, status, out)
	return nil
}

func (h *handler) createGroup(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	c, err := readBody(r, groupResource)
	if err != nil {
		return err
	}
	g, err := h.Store.AddSCIMGroup(r.Context(), by, c)
	if err != nil {
		return err
	}
	return h.writeGroup(w, r, by, g.ID, http.StatusCreated)
}

func (h *handler) replaceGroup(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	c, err := readBody(r, groupResource)
	if err != nil {
		return err
	}
	g, err := h.Store.ChangeSCIMGroup(r.Context(), by, r.PathValue("id"), c)
	if err != nil {
		return err
	}
	return h.writeGroup(w, r, by, g.ID, http.StatusOK)
}

// patchGroup changes a group. Its response omits the group (RFC 7644 section 3.5.2), which may have
// very many members.
func (h *handler) patchGroup(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	c, err := readBody(r, groupPatch)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if onlyRemoves(c) { // so that it works even on a full disk
		ctx = store.AllowReserve(ctx)
	}
	if _, err := h.Store.ChangeSCIMGroup(ctx, by, r.PathValue("id"), c); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// onlyRemoves reports whether a change does nothing but remove members.
func onlyRemoves(c store.SCIMGroupChange) bool {
	for _, step := range c.Members {
		if step.Action != store.SCIMRemove && len(step.IDs) > 0 { // replacing with none removes all
			return false
		}
	}
	return c.DisplayName == nil && c.ExternalID == nil
}

func (h *handler) deleteGroup(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	if err := h.Store.DeleteSCIMGroup(r.Context(), by, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
