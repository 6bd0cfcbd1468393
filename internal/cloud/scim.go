package cloud

import (
	"errors"
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
	if errors.Is(err, snap.ErrUnauthenticated) {
		err = errNoSCIMKey
	}
	if err != nil {
		return store.Reporter{}, err
	}
	noteCaller(r.Context(), c)
	if err := s.load.CountCredential(r.Context(), c); err != nil {
		return store.Reporter{}, err
	}
	return s.signin.Reporter(c), nil
}

// errNoSCIMKey is the error for every request without a valid SCIM key. It is for the administrator
// of an identity provider.
var errNoSCIMKey = &snap.Error{
	Code:   snap.CodeUnauthenticated,
	Detail: "the SCIM key is missing, wrong, expired or revoked",
	Hint: "send a SCIM key (scim_) as the bearer token; the service's operator creates one with " +
		"`snapcloud key create --org SLUG --kind scim`",
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
