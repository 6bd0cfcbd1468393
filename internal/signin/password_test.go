package signin_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"snap/internal/signin"
)

// TestUnknownUsersTakeAsLong checks that the password of an unknown user is compared with the
// slowest hash in the configuration, whatever the order of the users, and is never accepted.
func TestUnknownUsersTakeAsLong(t *testing.T) {
	t.Parallel()
	hash := func(cost int) string {
		h, err := bcrypt.GenerateFromPassword([]byte("secret"), cost)
		if err != nil {
			t.Fatal(err)
		}
		return string(h)
	}
	cheap, costly := hash(bcrypt.MinCost), hash(bcrypt.MinCost+1)
	users := []signin.LocalUser{
		{Email: "plain@acme.test", Password: "secret"},
		{Email: "cheap@acme.test", Password: cheap},
		{Email: "costly@acme.test", Password: costly},
		{Email: "broken@acme.test", Password: "$2broken"},
	}
	twice := signin.Organization{Slug: "globex", Local: slices.Clone(users[:1])}
	for range 2 {
		slices.Reverse(users)
		h := startListed(t, signin.Organization{Slug: "acme", Local: slices.Clone(users)}, twice)
		for _, tc := range []struct{ org, email string }{
			{"acme", "nobody@acme.test"},
			{"", "nobody@acme.test"},
			{"nowhere", "cheap@acme.test"},
			{"", "plain@acme.test"},
		} {
			if got, known := h.service.Compared(tc.org, tc.email); got != costly || known {
				t.Errorf("%s at %q: compared with %q, known: %v", tc.email, tc.org, got, known)
			}
		}
		for email, right := range map[string]bool{"plain@acme.test": true, "cheap@acme.test": true,
			"costly@acme.test": true, "broken@acme.test": false, "nobody@acme.test": false} {
			b := h.browser()
			page := b.get("/auth/signin")
			a := b.submit(page, "/auth/signin", "organization", "acme", "email", email, "password", "secret")
			if strings.Contains(a.body, "E-mail or password is wrong") == right {
				t.Errorf("%s: right is %v (%d)", email, right, a.status)
			}
		}
	}
}
