package scim

import (
	"net/http"

	"snap/internal/store"
)

func (h *handler) listUsers(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	p, start, err := pageOf(r, "id", "username", "externalid", "displayname")
	if err != nil {
		return err
	}
	found, total, err := h.Store.SCIMUsers(r.Context(), by.Caller.Org.ID, p)
	if err != nil {
		return err
	}
	var items []user
	for _, u := range found {
		items = append(items, h.user(u))
	}
	return writeList(w, items, total, start)
}

func (h *handler) getUser(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	found, _, err := h.Store.SCIMUsers(r.Context(), by.Caller.Org.ID, store.SCIMPage{ID: r.PathValue("id"), Limit: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errNoResource
	}
	writeJSON(w, http.StatusOK, h.user(found[0]))
	return nil
}

func (h *handler) createUser(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	c, err := readBody(r, userResource)
	if err != nil {
		return err
	}
	u, err := h.Store.AddSCIMUser(r.Context(), by, c)
	if err != nil {
		return err
	}
	out := h.user(u)
	w.Header().Set("Location", out.Meta.Location)
	writeJSON(w, http.StatusCreated, out)
	return nil
}

func (h *handler) replaceUser(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	return h.changeUser(w, r, by, userResource)
}

func (h *handler) patchUser(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	return h.changeUser(w, r, by, userPatch)
}

func (h *handler) changeUser(w http.ResponseWriter, r *http.Request, by store.Reporter,
	read func([]byte) (store.SCIMUserChange, error)) error {
	c, err := readBody(r, read)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if c.Active != nil && !*c.Active { // deactivating works even on a full disk
		ctx = store.AllowReserve(ctx)
	}
	u, err := h.Store.ChangeSCIMUser(ctx, by, r.PathValue("id"), c)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, h.user(u))
	return nil
}

func (h *handler) deleteUser(w http.ResponseWriter, r *http.Request, by store.Reporter) error {
	if err := h.Store.DeleteSCIMUser(r.Context(), by, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
