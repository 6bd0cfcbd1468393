package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// grantExchange is the grant type that exchanges the token of a CI job for a credential (RFC 8693).
const grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

// Token types (RFC 8693 section 3).
const (
	typeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	typeJWT         = "urn:ietf:params:oauth:token-type:jwt"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// CredentialLife is how long the credential of a CI job is valid.
const CredentialLife = 15 * time.Minute

// exchangeResponse is the response to a token exchange (RFC 8693 section 2.2.1). The access token
// is an API key, which only the API's agent mount (api.MountAgent) accepts.
type exchangeResponse struct {
	AccessToken  string `json:"access_token"`
	IssuedType   string `json:"issued_token_type"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	Scope        string `json:"scope,omitempty"`
	Organization string `json:"organization"` // slug
}

// exchangeRequest holds the parameters of a token exchange. The parameter organization is our own:
// it chooses among organizations that trust the same job.
type exchangeRequest struct {
	token, previous, organization string
	scopes                        []snap.Scope
}

// oauthRefusal is an error that the token endpoint sends to the client.
type oauthRefusal struct{ code, description string }

func (e oauthRefusal) Error() string { return e.code + ": " + e.description }

// errNoTrust is the error for every token that is not accepted. Only the log has the reason.
var errNoTrust = oauthRefusal{"invalid_request", "the subject_token is not valid, or no trust rule accepts it; the " +
	"service's log has the reason"}

// exchangeGrant handles a token exchange. Any client may request one, because the job's token is
// the credential.
func (s *Service) exchangeGrant(w http.ResponseWriter, r *http.Request, f url.Values) {
	if (f.Has("client_id") || r.Header.Get("Authorization") != "") && !s.requireClient(w, r, f) {
		return
	}
	answer, err := s.exchange(r, f)
	var refused oauthRefusal
	switch {
	case errors.As(err, &refused):
		s.count("exchange", "refused")
		s.writeOAuthError(w, http.StatusBadRequest, refused.code, refused.description)
	case errors.Is(err, auth.ErrProviderDown):
		s.writeProviderDown(w, "exchange", "the issuer's keys cannot be read; try again in a moment")
	case err != nil:
		s.count("exchange", outcome(err))
		s.writeFailure(w, r, err)
	default:
		s.count("exchange", "ok")
		writeJSON(w, http.StatusOK, answer)
	}
}

func parseExchange(f url.Values) (q exchangeRequest, err error) {
	switch requested := f.Get("requested_token_type"); {
	case f.Get("subject_token") == "":
		return q, oauthRefusal{"invalid_request", "subject_token is missing"}
	case f.Get("subject_token_type") != typeIDToken && f.Get("subject_token_type") != typeJWT:
		return q, oauthRefusal{"invalid_request", "subject_token_type must be " + typeIDToken + " or " + typeJWT}
	case requested != "" && requested != typeAccessToken:
		return q, oauthRefusal{"invalid_request", "requested_token_type must be " + typeAccessToken}
	case f.Has("actor_token") != f.Has("actor_token_type"),
		f.Has("actor_token") && f.Get("actor_token_type") != typeAccessToken:
		return q, oauthRefusal{"invalid_request", "actor_token must be the previous credential, and actor_token_type " +
			typeAccessToken}
	}
	q = exchangeRequest{token: f.Get("subject_token"), previous: f.Get("actor_token"),
		organization: f.Get("organization")}
	for _, word := range strings.Fields(f.Get("scope")) {
		if !slices.Contains(snap.Scopes(), snap.Scope(word)) {
			return q, oauthRefusal{"invalid_scope", "the scopes are pull, push and private"}
		}
		q.scopes = append(q.scopes, snap.Scope(word))
	}
	return q, nil
}

// exchange verifies a job's token, finds the rule that accepts it and issues a credential.
func (s *Service) exchange(r *http.Request, f url.Values) (exchangeResponse, error) {
	ctx := r.Context()
	q, err := parseExchange(f)
	if err != nil {
		return exchangeResponse{}, err
	}
	org, rule, issued, err := s.findTrust(ctx, q)
	if err != nil {
		return exchangeResponse{}, err
	}
	e := store.Exchange{
		Org: org.OrgRef, Rule: rule.fingerprint(), Issuer: issued.Issuer, Subject: issued.Subject,
		Token: auth.HashOf(issued.Issuer + "\n" + issued.ID), Until: issued.Expires, Kind: snap.PipelineKey,
		Name:   printable(fmt.Sprintf("%s: %s of %s", rule.Name, issued.Subject, issued.Issuer), 300),
		Scopes: rule.Scopes, Expires: s.now().Add(CredentialLife),
	}
	if len(q.scopes) > 0 {
		e.Scopes = q.scopes
	}
	if q.previous != "" {
		e.Previous = auth.HashOf(q.previous)
	}
	if rule.User != "" {
		if e.UserID, err = s.serviceUser(ctx, org, rule); err != nil {
			return exchangeResponse{}, err
		}
		e.Kind, e.Scopes = snap.UserKey, nil
	}
	secret, sum, hint := auth.NewSecret(e.Kind)
	e.Hash, e.Hint = sum, hint
	key, err := s.store.Exchange(ctx, e)
	if code := snap.CodeOf(err); code == snap.CodeConflict || code == snap.CodeForbidden {
		return exchangeResponse{}, s.refuseToken(ctx, issued.Issuer, issued.Subject, err.Error())
	}
	if err != nil {
		return exchangeResponse{}, err
	}
	s.log.InfoContext(ctx, "a CI job got a credential", "organization", org.Slug, "rule", rule.Name, "issuer",
		issued.Issuer, "subject", issued.Subject, "key", key.ID)
	return exchangeResponse{AccessToken: secret, IssuedType: typeAccessToken, TokenType: "Bearer",
		ExpiresIn: int(CredentialLife.Seconds()), Scope: joinScopes(e.Scopes), Organization: org.Slug}, nil
}

func joinScopes(scopes []snap.Scope) string {
	var all []string
	for _, scope := range scopes {
		all = append(all, string(scope))
	}
	return strings.Join(all, " ")
}

// refuseToken logs why a token was refused, and returns the error for the client.
func (s *Service) refuseToken(ctx context.Context, issuer, subject, why string) error {
	s.log.WarnContext(ctx, "the token of a CI job was refused", "issuer", printable(issuer, 200), "subject",
		printable(subject, 200), "reason", why)
	return errNoTrust
}

// findTrust verifies a token against the rules that name its issuer. It returns the organization
// that trusts the job, with its first rule that accepts the token. If several organizations trust
// the job, the request must name one of them. A rule whose issuer does not respond accepts nothing.
// findTrust fails because of such a rule only if no other rule accepts the token.
func (s *Service) findTrust(ctx context.Context, q exchangeRequest) (found organization, accepting Trust,
	issued auth.IssuedToken, err error) {
	named := auth.NamedIssuer(q.token)
	why := "no rule names this issuer"
	down := map[bool]error{} // by AllowPrivate; an issuer that does not respond is asked only once
	for _, org := range s.orgs {
		if q.organization != "" && org.Slug != q.organization {
			continue
		}
		for _, rule := range org.trust {
			if rule.Issuer != named || down[rule.AllowPrivate] != nil {
				continue
			}
			token, reason, err := s.checkToken(ctx, rule, q)
			if err != nil {
				s.log.WarnContext(ctx, "the keys of a CI system cannot be read", "organization", org.Slug, "rule",
					rule.Name, "error", err)
				down[rule.AllowPrivate] = err
				continue
			}
			if reason != "" {
				why = "rule " + rule.Name + " of " + org.Slug + ": " + reason
				continue
			}
			if found.ID != 0 {
				return found, accepting, issued, oauthRefusal{"invalid_request",
					"several organizations trust this job; choose one with the parameter organization"}
			}
			found, accepting, issued = org, rule, token
			break
		}
	}
	if found.ID == 0 {
		if err = errors.Join(down[false], down[true]); err == nil {
			err = s.refuseToken(ctx, named, "", why)
		}
	}
	return found, accepting, issued, err
}

// checkToken verifies a token and compares it with a rule. If the rule does not accept the token,
// it returns the reason. It fails if the issuer does not respond.
func (s *Service) checkToken(ctx context.Context, rule Trust, q exchangeRequest) (t auth.IssuedToken, reason string,
	err error) {
	issuer, err := s.issuers.get(s, rule)
	if err != nil {
		return t, "", err
	}
	t, err = issuer.Verify(ctx, q.token, rule.Audience)
	switch {
	case errors.Is(err, auth.ErrProviderDown):
		return t, "", err
	case err != nil:
		return t, err.Error(), nil //nolint:nilerr // the error is the reason for the log
	}
	if claim := rule.mismatch(t.Claims); claim != "" {
		found, _ := auth.ClaimText(t.Claims, claim)
		return t, fmt.Sprintf("the claim %s is %q", claim, printable(found, 100)), nil
	}
	for _, scope := range q.scopes {
		if !slices.Contains(rule.Scopes, scope) {
			return t, "the rule does not allow the scope " + string(scope), nil
		}
	}
	return t, "", nil
}

// serviceUser returns the user that a rule's jobs act as. As with a key, the identity provider must
// have confirmed the user recently enough.
func (s *Service) serviceUser(ctx context.Context, org organization, rule Trust) (int64, error) {
	issuer, subject := localIssuer, strings.ToLower(rule.User)
	if org.oidc != nil {
		issuer, subject = org.oidc.Issuer, rule.User
	}
	u, err := s.store.Account(ctx, org.ID, issuer, subject)
	if snap.CodeOf(err) == snap.CodeNotFound {
		return 0, s.refuseToken(ctx, rule.Issuer, "", "the user of rule "+rule.Name+" does not exist or is disabled")
	}
	if err != nil {
		return 0, err
	}
	var confirmed time.Time
	if t, err := s.store.StandingOf(ctx, u.ID); err == nil {
		confirmed = t.Checked
	}
	asKey := snap.Caller{Org: org.OrgRef, User: &u, Credential: snap.Credential{Kind: snap.UserKey}}
	_, err = s.Confirm(ctx, asKey, confirmed, true)
	if errors.Is(err, snap.ErrUnauthenticated) {
		err = s.refuseToken(ctx, rule.Issuer, "", "the identity provider has not confirmed the user of rule "+rule.Name)
	}
	return u.ID, err
}
