package signin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"snap"
	"snap/internal/store"
)

type signInPage struct {
	layout
	Next         string
	Choose       bool           // the person must choose the organization first
	Listed       []organization // the organizations to choose from; if empty, the person types one
	Organization organization
	Several      bool   // there are organizations other than Organization
	Slug         string // as typed
	Local        bool   // the page asks for e-mail and password
	Email        string
	Problem      string
	Hint         string
}

// signInPage asks for the organization if there are several, and then shows how to sign in to it.
func (s *Service) signInPage(v *visit) error {
	q := v.r.URL.Query()
	data := signInPage{layout: s.layout(v, "Sign in"), Next: s.localPath(q.Get("next"))}
	return s.showSignIn(v, http.StatusOK, data, q.Get("organization"))
}

// showSignIn writes the page. When the page lists the organizations and all of them have local
// users, a single form asks for everything.
func (s *Service) showSignIn(v *visit, status int, data signInPage, slug string) error {
	slug = strings.ToLower(strings.TrimSpace(slug))
	if slug == "" && len(s.orgs) == 1 {
		slug = s.orgs[0].Slug
	}
	data.Slug = printable(slug, 254)
	org, ok := s.enteredOrganization(slug)
	if s.listed && len(s.orgs) > 1 {
		data.Listed = s.orgs
	}
	switch {
	case data.Listed != nil && !slices.ContainsFunc(s.orgs, usesProvider):
		data.Local = true
	case ok:
		data.Organization, data.Local, data.Several = org, org.oidc == nil, len(s.orgs) > 1
		data.Listed = nil
		if strings.Contains(slug, "@") && data.Email == "" {
			data.Email = data.Slug
		}
	default:
		data.Choose = true
	}
	if slug != "" && !ok && data.Problem == "" {
		status = http.StatusNotFound
		data.Problem, data.Hint = "No organization here is known as "+data.Slug+".",
			"Type its short name, which a colleague sees in `snapcli whoami`, or your e-mail address at work."
	}
	return s.views.Page(v.w, status, "signin.html", data)
}

// enteredOrganization returns the organization that a person entered as a slug, or as an e-mail
// address or domain that belongs to only one organization.
func (s *Service) enteredOrganization(typed string) (found organization, ok bool) {
	if org, ok := s.organization(typed); ok {
		return org, true
	}
	domain := typed[strings.LastIndex(typed, "@")+1:]
	for _, o := range s.orgs {
		if slices.Contains(o.domains, domain) {
			if ok {
				return organization{}, false
			}
			found, ok = o, true
		}
	}
	return found, ok
}

func usesProvider(o organization) bool { return o.oidc != nil }

// postSignIn handles the e-mail and password of a local user.
func (s *Service) postSignIn(v *visit) error {
	f := v.r.PostForm
	next := s.localPath(f.Get("next"))
	org, userID, err := s.localSignIn(v, f)
	if err == nil {
		err = s.signInBrowser(v, org, store.InteractiveSignIn{UserID: userID})
	}
	s.count("password", outcome(err))
	if err != nil {
		known, ok := errors.AsType[*snap.Error](err)
		if !ok {
			return err
		}
		data := signInPage{layout: s.layout(v, "Sign in"), Next: next, Email: printable(f.Get("email"), 200)}
		data.Problem, data.Hint = sentence(known.Error()), sentence(known.Hint)
		return s.showSignIn(v, known.Code.Info().Status, data, f.Get("organization"))
	}
	http.Redirect(v.w, v.r, next, http.StatusSeeOther)
	return nil
}

var errWrongPassword = &snap.Error{Code: snap.CodeUnauthenticated, Detail: "e-mail or password is wrong",
	Hint: "check both, and the organization"}

// localSignIn checks e-mail and password, and applies the user's settings in the configuration.
// Wrong passwords are counted in three ways. The count by account and address together prevents
// people from locking out others. The count by address stops attempts to try one password on many
// accounts. The count by account, with a far higher limit, stops many addresses from guessing one
// account's password.
func (s *Service) localSignIn(v *visit, f url.Values) (org organization, userID int64, err error) {
	ctx := v.r.Context()
	email := strings.ToLower(strings.TrimSpace(f.Get("email")))
	org, u, known := s.localUser(strings.ToLower(strings.TrimSpace(f.Get("organization"))), email)
	byAddress, byAccount := "password:address:"+s.address(v.r), "password:account:"+org.Slug+":"+printable(email, 200)
	byPair := byAccount + ":" + s.address(v.r)
	buckets := map[string]int{byPair: maxMisses, byAddress: maxAddressTries, byAccount: maxAccountTries}
	for bucket, max := range buckets {
		if err := s.requireFewMisses(ctx, bucket, max); err != nil {
			return org, 0, err
		}
	}
	err = s.guess(ctx, byPair, buckets, func() error {
		if !passwordIs(u, known, f.Get("password")) {
			s.log.WarnContext(ctx, "wrong password", "address", s.address(v.r), "organization", org.Slug, "user",
				u.Email)
			return errWrongPassword
		}
		return nil
	})
	if err != nil {
		return org, 0, err
	}
	v.actAs(snap.Acting(org.OrgRef, snap.PartProvider)) // and not as a user who is already signed in
	userID, err = s.applyLocalSettings(v.r.Context(), org, u)
	return org, userID, err
}

// localUser returns a local user. Without a slug, the e-mail must belong to exactly one
// organization. An unknown user has the slowest password of all local users, so that the time of a
// response does not reveal which e-mail addresses have an account.
func (s *Service) localUser(slug, email string) (org organization, u LocalUser, ok bool) {
	unknown := LocalUser{Password: s.slowest}
	u = unknown
	for _, o := range s.orgs {
		if slug != "" && o.Slug != slug {
			continue
		}
		if found, here := o.local[email]; here {
			if ok {
				return organization{}, unknown, false
			}
			org, u, ok = o, found, true
		}
	}
	return org, u, ok
}

// passwordIs compares a password in constant time. No password is right for an unknown user.
func passwordIs(u LocalUser, known bool, password string) bool {
	if strings.HasPrefix(u.Password, "$2") {
		return bcrypt.CompareHashAndPassword([]byte(u.Password), []byte(password)) == nil && known
	}
	want, got := sha256.Sum256([]byte(u.Password)), sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 && known && u.Password != ""
}

// bcryptCost returns the cost of a bcrypt hash, or 0 for a password in plain text.
func bcryptCost(password string) int {
	cost, _ := bcrypt.Cost([]byte(password))
	return cost
}

func (s *Service) signOut(v *visit) error {
	if err := s.browser.SignOut(v.w, v.r); err != nil {
		return err
	}
	return s.redirect(v, "/signin", nil)
}
