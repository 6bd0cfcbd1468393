package cloud

import (
	"maps"
	"net/http"
	"strings"

	"snap"
	"snap/internal/scim"
	"snap/internal/store"
)

// scimHandler returns the handler of the routes by which identity providers report people and
// groups. The routes require a SCIM key of the organization.
func (s *Service) scimHandler() http.Handler {
	return scim.New(scim.Options{Store: s.store, PublicURL: s.config.PublicURL, Reporter: s.reporter,
		Fail: s.writeError})
}

func (s *Service) reporter(r *http.Request) (store.Reporter, error) {
	c, err := s.auth.SCIM(r)
	if err != nil {
		return store.Reporter{}, err
	}
	noteCaller(r.Context(), c)
	if err := s.load.CountCredential(r.Context(), c); err != nil {
		return store.Reporter{}, err
	}
	return s.signin.Reporter(c), nil
}

// writeSCIMError is like writeError, but in the form that SCIM defines.
func (s *Service) writeSCIMError(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(r.Context(), s.telemetry.outages, err)
	maps.Copy(w.Header(), p.GetHeaders())
	detail := strings.TrimSuffix(p.Detail+"; "+p.Hint, "; ")
	if p.Code == snap.CodeInternal {
		detail += " (request " + p.RequestID + ")"
	}
	scim.WriteError(w, p.Status, detail, err)
}
