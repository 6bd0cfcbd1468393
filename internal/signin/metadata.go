package signin

import (
	"net/http"

	"github.com/go-jose/go-jose/v4"
)

// metadata is the discovery document (RFC 8414 section 2). It lists only what exists: there is no
// authorization endpoint.
type metadata struct {
	Issuer              string   `json:"issuer"`
	DeviceAuthorization string   `json:"device_authorization_endpoint"`
	Token               string   `json:"token_endpoint"`
	Revocation          string   `json:"revocation_endpoint"`
	Userinfo            string   `json:"userinfo_endpoint"`
	JWKS                string   `json:"jwks_uri"`
	Scopes              []string `json:"scopes_supported"`
	ResponseTypes       []string `json:"response_types_supported"`
	Grants              []string `json:"grant_types_supported"`
	TokenAuth           []string `json:"token_endpoint_auth_methods_supported"`
	RevocationAuth      []string `json:"revocation_endpoint_auth_methods_supported"`
	SubjectTypes        []string `json:"subject_types_supported"`
	IDTokenAlgorithms   []string `json:"id_token_signing_alg_values_supported"`
}

func (s *Service) metadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, metadata{
		Issuer:              s.issuer,
		DeviceAuthorization: s.issuer + "/device_authorization",
		Token:               s.issuer + "/token",
		Revocation:          s.issuer + "/revoke",
		Userinfo:            s.issuer + "/userinfo",
		JWKS:                s.issuer + "/jwks",
		Scopes:              scopes(),
		ResponseTypes:       []string{},
		Grants:              s.grants(),
		TokenAuth:           []string{"none"},
		RevocationAuth:      []string{"none"},
		SubjectTypes:        []string{"public"},
		IDTokenAlgorithms:   []string{string(jose.ES256)},
	})
}

// jwks serves the public keys. They may be cached, but for less time than an old key stays in the
// set.
func (s *Service) jwks(w http.ResponseWriter, r *http.Request) {
	set, err := s.tokens.JWKS(r.Context())
	if err != nil {
		s.writeFailure(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(set)
}

// grants returns the grant types that the token endpoint supports. It includes token exchange only
// if the service accepts tokens from a CI system.
func (s *Service) grants() []string {
	if s.ExchangeURL() == "" {
		return []string{grantDevice, grantRefresh}
	}
	return []string{grantDevice, grantRefresh, grantExchange}
}
