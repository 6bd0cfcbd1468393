package signin

import (
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// TestUnknownUsersTakeAsLong checks that the password of an unknown user is compared with the
// slowest hash of the configuration, whatever the order of the users, and is never accepted.
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
	for _, passwords := range [][]string{
		{"secret", cheap, costly}, {costly, cheap, "secret"}, {cheap, costly, "$2broken"}, {"", costly},
	} {
		var s Service
		for _, p := range passwords {
			s.slowest = slower(s.slowest, p)
		}
		if s.slowest != costly {
			t.Errorf("%q: unknown users are compared with %q", passwords, s.slowest)
		}
		if s.passwordIs(LocalUser{}, false, "secret") {
			t.Errorf("%q: an unknown user has a password", passwords)
		}
		known := LocalUser{Password: cheap}
		if !s.passwordIs(known, true, "secret") || s.passwordIs(known, true, "") {
			t.Errorf("%q: a known user's hash does not decide", passwords)
		}
	}
	for _, slowest := range []string{"", "secret"} {
		s := Service{slowest: slowest}
		if s.passwordIs(LocalUser{}, false, slowest) || s.passwordIs(LocalUser{}, true, "") {
			t.Errorf("slowest %q: accepted", slowest)
		}
		if !s.passwordIs(LocalUser{Password: "secret"}, true, "secret") {
			t.Error("a plain-text password is refused")
		}
	}
}
