package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// The default settings for confirming people at their identity provider.
const (
	DefaultRecheck      = 15 * time.Minute
	DefaultMaxStaleness = 24 * time.Hour
	DefaultMaxLogin     = 30 * 24 * time.Hour
	// UnconfirmedLogin is the longest life of a session when the identity provider issues no
	// refresh token and therefore cannot confirm its users.
	UnconfirmedLogin = 24 * time.Hour
)

const (
	// checkAgain is the wait before the next check of a person after the provider did not respond.
	checkAgain = time.Minute
	// claimLife is longer than a check can take, so that no two replicas use one refresh token.
	claimLife = 45 * time.Second
)

// timeouts limits how long the service waits for a provider.
type timeouts struct {
	check   time.Duration // for all requests of one check
	request time.Duration // how long a request waits for its check, which then continues
	round   time.Duration // how long a background round waits for its checks, which then continue
}

var defaultTimeouts = timeouts{check: 30 * time.Second, request: 5 * time.Second, round: time.Second}

// freshness holds an organization's settings for confirming people.
type freshness struct{ recheck, staleness, login time.Duration }

func freshnessOf(o Organization) freshness {
	return freshness{cmp.Or(o.Recheck, DefaultRecheck), cmp.Or(o.MaxStaleness, DefaultMaxStaleness),
		cmp.Or(o.MaxLogin, DefaultMaxLogin)}
}

// The reasons why a session is not refreshed.
var (
	errSignInDue = errors.New("the last sign-in was too long ago; sign in again")
	errLeft      = errors.New("the identity provider no longer confirms the account; sign in again")
)

// errStale reports that the identity provider has not confirmed the account for too long. The
// session is kept and can be refreshed when the provider responds again.
type errStale struct{ since time.Time }

func (e errStale) Error() string {
	return "the identity provider has not confirmed the account since " + e.since.UTC().Format(time.RFC3339) +
		"; try again later"
}

// sealRefresh returns a provider's refresh token in encrypted form for storing. It is nil when the
// provider issued no token or the service has no encryption key.
func (s *Service) sealRefresh(userID int64, refresh string) []byte {
	if s.sealer == nil || refresh == "" {
		return nil
	}
	return s.sealer.Seal(refreshName(userID), []byte(refresh))
}

func refreshName(userID int64) string { return "sign-in:" + formatID(userID) }

// SignInDue returns when a user must sign in again, and when their identity provider last confirmed
// them. Both are zero for a user whose organization is not configured. due is zero for a user who
// has never signed in, or whose sessions were all ended.
func (s *Service) SignInDue(ctx context.Context, userID int64) (due, confirmed time.Time, err error) {
	t, err := s.store.StandingOf(ctx, userID)
	org, ok := s.organizationByID(t.OrgID)
	if errors.Is(err, snap.ErrUnauthenticated) || err == nil && !ok {
		return time.Time{}, time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	if t.SignedIn.UnixMilli() == 0 {
		return time.Time{}, t.Checked, nil
	}
	return org.due(t), t.Checked, nil
}

// due returns when the user must sign in again.
func (o organization) due(t store.Standing) time.Time {
	due := t.SignedIn.Add(o.fresh.login)
	if o.oidc == nil || t.Refresh != nil {
		return due
	}
	confirmed := t.SignedIn
	if t.Checked.After(confirmed) { // the provider confirmed the user until the refresh token was lost
		confirmed = t.Checked
	}
	if unconfirmed := confirmed.Add(UnconfirmedLogin); unconfirmed.Before(due) {
		return unconfirmed
	}
	return due
}

// confirmRefresh decides whether the session of a refresh token may continue: the user must have
// signed in recently enough, and their identity provider must still confirm them. It accepts a
// token that is no longer valid, because the rotation refuses that token.
func (s *Service) confirmRefresh(ctx context.Context, hash []byte) error {
	userID, err := s.store.RefreshUser(ctx, hash, s.client)
	if errors.Is(err, snap.ErrUnauthenticated) {
		return nil
	}
	if err != nil {
		return err
	}
	t, err := s.store.StandingOf(ctx, userID)
	if errors.Is(err, snap.ErrUnauthenticated) {
		return errSignInDue
	}
	if err != nil {
		return err
	}
	org, ok := s.organizationByID(t.OrgID)
	switch {
	case !ok:
		return nil // the rotation reports a closed organization
	case !s.now().Before(org.due(t)):
		return errSignInDue
	case t.Refresh == nil || org.oidc == nil:
		return nil
	}
	if s.now().Sub(t.Checked) >= org.fresh.recheck {
		if t, err = s.checkBriefly(ctx, org, t); err != nil {
			return err
		}
	}
	if s.now().Sub(t.Checked) >= org.fresh.staleness {
		return errStale{t.Checked}
	}
	return nil
}

// Confirm decides whether a caller's user was confirmed recently enough. If ask is set, Confirm
// first asks the identity provider about a user whose last confirmation is older than the
// organization's setting recheck. Usually background work has already asked, and a request asks
// only when that work is behind or the user was away. fresh reports whether the provider confirmed
// the user just now. Confirm fails with snap.ErrUnauthenticated when the provider no longer knows
// the user, or has not confirmed them for max_staleness. Access tokens are exempt from
// max_staleness, because confirmRefresh allows no new ones after that time. Confirm accepts local
// users and callers without a user.
func (s *Service) Confirm(ctx context.Context, c snap.Caller, confirmed time.Time, ask bool) (fresh bool, err error) {
	org, ok := s.organizationByID(c.Org.ID)
	if !ok || org.oidc == nil || c.User == nil {
		return false, nil
	}
	if ask && s.sealer != nil && s.now().Sub(confirmed) >= org.fresh.recheck {
		before := confirmed
		if confirmed, err = s.confirmNow(ctx, org, c.User.ID); err != nil {
			return false, err
		}
		fresh = confirmed.After(before)
	}
	if c.Credential.Kind != snap.LoginToken && s.now().Sub(confirmed) >= org.fresh.staleness {
		return fresh, snap.ErrUnauthenticated
	}
	return fresh, nil
}

// confirmNow asks the identity provider about a user if it issued a refresh token for the user, and
// returns when the user was last confirmed.
func (s *Service) confirmNow(ctx context.Context, org organization, userID int64) (time.Time, error) {
	t, err := s.store.StandingOf(ctx, userID)
	if err != nil || t.Refresh == nil {
		return t.Checked, err
	}
	t, err = s.checkBriefly(ctx, org, t)
	if errors.Is(err, errLeft) {
		err = snap.ErrUnauthenticated
	}
	return t.Checked, err
}

// checkBriefly is like check, but waits only a few seconds, because a request waits for the result.
// A slower provider is treated as one that does not respond, but its response still counts when it
// arrives.
func (s *Service) checkBriefly(ctx context.Context, org organization, t store.Standing) (store.Standing, error) {
	type result struct {
		store.Standing
		err error
	}
	answer := make(chan result, 1)
	s.checks.Go(func() {
		t, err := s.check(context.WithoutCancel(ctx), org, t)
		answer <- result{t, err}
	})
	timer := time.NewTimer(s.timeouts.request)
	defer timer.Stop()
	select {
	case r := <-answer:
		return r.Standing, r.err
	case <-timer.C:
		return t, nil
	}
}

// refuseRefresh writes the response to a refresh that confirmRefresh refused.
func (s *Service) refuseRefresh(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errSignInDue), errors.Is(err, errLeft):
		s.count("refresh", "expired")
		s.writeOAuthError(w, http.StatusBadRequest, "invalid_grant", err.Error())
	case errors.As(err, new(errStale)): // not invalid_grant, so that the client keeps its token
		s.count("refresh", "refused")
		s.writeOAuthError(w, http.StatusBadRequest, "unauthorized_client", err.Error())
	default:
		s.count("refresh", outcome(err))
		s.writeFailure(w, r, err)
	}
}

// check asks the identity provider whether a user still exists, and applies their current role and
// groups. If the provider does not respond, the account does not change. check returns the user's
// new [store.Standing], or errLeft, in which case the user's sessions were ended and their keys
// revoked. Only one replica asks at a time; the others wait for its result.
func (s *Service) check(ctx context.Context, org organization, t store.Standing) (store.Standing, error) {
	if t.NotBefore.After(s.now()) {
		return t, nil
	}
	// The check may write even on a full disk, because it may end a user's access, and because an
	// unshare may have to wait for it.
	ctx = store.AllowReserve(ctx)
	// doubts is 0 if another replica is asking or the provider has just failed, and more than 1 if
	// the outcome of an earlier check is unknown: the provider may have replaced the refresh token
	// then.
	doubts, err := s.store.ClaimCheck(ctx, t, claimLife)
	if err != nil {
		return t, err
	}
	if doubts == 0 {
		return s.await(ctx, t)
	}
	ctx = snap.ActingAs(ctx, snap.Acting(org.OrgRef, snap.PartProvider))
	// The provider's response may contain the only copy of the next refresh token, so the token is
	// stored even if the client has disconnected.
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeouts.check)
	defer cancel()
	err = s.refreshClaims(asking, org, t)
	ctx = context.WithoutCancel(ctx) // the outcome is stored even after the check's time limit
	log := s.log.With("organization", org.Slug, "user", t.UserID)
	switch {
	case errors.Is(err, errLeft) && doubts > 1:
		log.WarnContext(ctx, "the identity provider refuses a refresh token that it may have replaced in a response "+
			"that did not arrive; the user must sign in again", "confirmed", t.Checked)
		t.Refresh = nil
		return t, s.store.KeepRefresh(ctx, t, nil)
	case errors.Is(err, errLeft):
		ended, err := s.store.EndRefused(ctx, t)
		if err != nil {
			return t, err
		}
		if !ended { // the user signed in again, or was signed out, before the refusal arrived
			return s.store.StandingOf(ctx, t.UserID)
		}
		log.WarnContext(ctx, "the identity provider no longer confirms a user; all sessions were ended and all "+
			"keys revoked")
		return t, errLeft
	case err != nil:
		log.WarnContext(ctx, "a user could not be confirmed at the identity provider", "confirmed", t.Checked,
			"error", err)
		return t, s.store.RecordUnconfirmed(ctx, t.UserID, checkAgain, org.fresh.recheck)
	}
	if err := s.store.RecordConfirmed(ctx, t.UserID, s.now()); err != nil {
		return t, err
	}
	return s.store.StandingOf(ctx, t.UserID)
}

// await waits for the result of another replica or request that is asking the provider. If none
// comes in time, it returns t.
func (s *Service) await(ctx context.Context, t store.Standing) (store.Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.request)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := s.store.StandingOf(ctx, t.UserID)
		switch {
		case ctx.Err() != nil:
			return t, nil
		case err != nil:
			return t, err
		case now.SignedIn.UnixMilli() == 0:
			return now, errLeft
		case !now.Claimed.After(s.now()):
			return now, nil
		}
		select {
		case <-ctx.Done():
			return t, nil
		case <-tick.C:
		}
	}
}

// refreshClaims redeems the provider's refresh token and applies the claims it gets.
func (s *Service) refreshClaims(ctx context.Context, org organization, t store.Standing) error {
	refresh, err := s.sealer.Open(refreshName(t.UserID), t.Refresh)
	if err != nil { // encrypted with another key: the person signs in again when that is due
		return errors.Join(err, s.store.KeepRefresh(ctx, t, nil))
	}
	d, err := org.provider.Discover(ctx)
	if err != nil {
		return errors.Join(err, s.store.RecordUnused(context.WithoutCancel(ctx), t))
	}
	ctx = org.provider.Context(ctx)
	config := s.oauthConfig(org, d)
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: string(refresh)}).Token()
	if err := s.storeOutcome(ctx, t, string(refresh), token, err); err != nil {
		return err
	}
	p, full, err := s.refreshedPerson(ctx, org, d, token, t)
	if err != nil || !full {
		return err
	}
	_, err = s.applyClaims(ctx, org, p)
	return err
}

// storeOutcome stores the provider's refresh token after a redemption. Providers that rotate tokens
// accept each token only once. Without a usable response, it is unknown whether the provider
// replaced the token, so storeOutcome stores nothing, and the next refusal does not prove that the
// person left. It returns errLeft for invalid_grant.
func (s *Service) storeOutcome(ctx context.Context, t store.Standing, old string, token *oauth2.Token,
	err error) error {
	ctx = context.WithoutCancel(ctx)
	var refused *oauth2.RetrieveError
	var dialed *net.OpError
	switch {
	case err == nil && token.RefreshToken != "" && token.RefreshToken != old:
		return s.store.KeepRefresh(ctx, t, s.sealRefresh(t.UserID, token.RefreshToken))
	case err == nil:
		return s.store.KeepRefresh(ctx, t, t.Refresh)
	case errors.As(err, &refused) && refused.ErrorCode == "invalid_grant":
		return errLeft
	case errors.As(err, &refused) && (refused.ErrorCode != "" || notProcessed(refused.Response.StatusCode)),
		errors.As(err, &dialed) && dialed.Op == "dial":
		return errors.Join(err, s.store.RecordUnused(ctx, t))
	}
	return err
}

// notProcessed reports whether a status means that the server did not process the request.
func notProcessed(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
}

// refreshedPerson reads the claims of a refreshed token: from the ID token, which may be missing
// (OpenID Connect Core section 12.2), and from userinfo. If there is no ID token and the claims
// have no groups, the claims are incomplete: they confirm the person but change nothing. It fails
// if a source is about someone else, or if there is no source.
func (s *Service) refreshedPerson(ctx context.Context, org organization, d *auth.Discovered, token *oauth2.Token,
	t store.Standing) (p auth.Person, full bool, err error) {
	claims := map[string]any{}
	raw, _ := token.Extra("id_token").(string)
	var issued time.Time
	if raw != "" {
		id, err := org.provider.Verify(ctx, d, org.oidc.ClientID, raw)
		if err != nil {
			return p, false, err
		}
		if id.Subject != t.Subject || id.Issuer != t.Issuer {
			return p, false, errors.New("the refreshed ID token is about someone else")
		}
		if err := id.Claims(&claims); err != nil {
			return p, false, err
		}
		issued = id.IssuedAt
	}
	p = auth.PersonFromClaims(t.Issuer, t.Subject, claims, org.oidc.Claims)
	if (!p.Groups.Known || claims["email"] == nil) && d.UserInfoEndpoint() != "" {
		p, err = s.refreshedUserinfo(ctx, org, d, token, t, claims)
	} else if raw == "" {
		err = errors.New("the identity provider sends no ID token on a refresh and has no userinfo endpoint")
	}
	if err != nil {
		return p, false, err
	}
	if claims["email"] == nil {
		p.Email, p.Verified = t.Email, t.Verified
	}
	if claims["name"] == nil {
		p.Name = t.Name
	}
	p.Issued = issued
	return p, raw != "" || p.Groups.Known, nil
}

// refreshedUserinfo adds the claims of userinfo to those of the ID token, and returns the person.
func (s *Service) refreshedUserinfo(ctx context.Context, org organization, d *auth.Discovered, token *oauth2.Token,
	t store.Standing, claims map[string]any) (auth.Person, error) {
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return auth.Person{}, fmt.Errorf("userinfo: %w", err)
	}
	if info.Subject != t.Subject {
		return auth.Person{}, errors.New("userinfo is about someone else")
	}
	if err := auth.AddUserinfo(claims, info); err != nil {
		return auth.Person{}, err
	}
	return auth.PersonFromClaims(t.Issuer, t.Subject, claims, org.oidc.Claims), nil
}

// Recheck asks each organization's identity provider about at most one user: the one who has waited
// longest, among the users who were active since their last confirmation and whose confirmation is
// older than the setting recheck. It returns the number of users it asked about. It is called once
// a second, so it asks about at most one user of an organization per second. A provider that does
// not respond within a second delays no other organization: the next calls skip it until its check
// has ended.
func (s *Service) Recheck(ctx context.Context) (asked int, err error) {
	type result struct {
		asked int
		err   error
	}
	results := make(chan result, len(s.orgs))
	running := 0
	for _, org := range s.orgs {
		if org.oidc == nil || s.sealer == nil || !org.asking.CompareAndSwap(false, true) {
			continue
		}
		running++
		s.checks.Go(func() {
			n, err := s.recheckOne(ctx, org)
			org.asking.Store(false)
			results <- result{n, err}
		})
	}
	timer := time.NewTimer(s.timeouts.round)
	defer timer.Stop()
	for ; running > 0; running-- {
		select {
		case r := <-results:
			asked, err = asked+r.asked, errors.Join(err, r.err)
		case <-timer.C:
			return asked, err
		}
	}
	return asked, err
}

// Wait waits until all checks at identity providers have ended, at most about half a minute, so
// that no new refresh token is lost when the process ends.
func (s *Service) Wait() { s.checks.Wait() }

func (s *Service) recheckOne(ctx context.Context, org organization) (asked int, err error) {
	due, err := s.store.DueStandings(ctx, org.ID, s.now().Add(-org.fresh.recheck), 1)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	if _, err := s.check(ctx, org, due[0]); err != nil && !errors.Is(err, errLeft) {
		return 1, err
	}
	return 1, nil
}

// warnUnconfirmed logs at startup the consequences of having no encryption key: the service cannot
// ask identity providers again whether they still know their users.
func (s *Service) warnUnconfirmed(ctx context.Context) {
	if s.sealer != nil {
		return
	}
	for _, o := range s.orgs {
		if o.oidc != nil {
			s.log.WarnContext(ctx, "auth.key_encryption_key is not set, so refresh tokens of identity providers are "+
				"not kept: people must sign in again after "+min(o.fresh.login, UnconfirmedLogin).String()+
				", and a person who has left keeps access until then; keys work for "+
				o.fresh.staleness.String()+" after each sign-in of their owner", "organization", o.Slug)
		}
	}
}
