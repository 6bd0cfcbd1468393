package signin

import (
	"context"
	"errors"
	"time"

	"snap"
	"snap/internal/store"
)

// Guessing is limited by user, by address and by account. Only what was wrong
// is counted, so that nobody is kept out by trying rightly.
const (
	maxMisses      = 5
	missWindow     = 10 * time.Minute
	maxAddressTrys = 50 // wrong passwords from one address, which may be a whole office
	alarmMisses    = 100
)

var errTooMany = &snap.Error{
	Code:   snap.CodeRateLimited,
	Detail: "too many wrong attempts",
	Hint:   "wait ten minutes and try again",
}

// pendingGrant finds the login that waits under a user code. Wrong codes are
// counted by user, and by address. A user with too many gets no further. At an
// address with too many, a visitor who is not signed in gets no further, but a
// signed-in user who did not guess does: others share the address.
//
// Every try is counted before it is judged, and forgiven if it was right, so
// that many at once get no more answers than one after the other.
func (s *Service) pendingGrant(v *visit, typed string) (store.DeviceGrant, error) {
	ctx := v.r.Context()
	here := "code:address:" + s.address(v.r)
	mine := here
	if v.signedIn() {
		mine = "code:user:" + formatID(v.caller.User.ID)
	}
	n, err := s.store.Miss(ctx, mine, missWindow)
	if err != nil {
		return store.DeviceGrant{}, err
	}
	if n > maxMisses {
		return store.DeviceGrant{}, errTooMany
	}
	g, err := s.lookUpCode(ctx, typed)
	if errors.Is(err, snap.ErrNotFound) {
		return g, s.missed(ctx, mine, here, err)
	}
	if err == nil {
		err = s.store.Forgive(ctx, mine)
	}
	return g, err
}

func (s *Service) lookUpCode(ctx context.Context, typed string) (store.DeviceGrant, error) {
	code, ok := cleanUserCode(typed)
	if !ok {
		return store.DeviceGrant{}, errNotACode
	}
	return s.store.PendingDevice(ctx, code)
}

// missed counts a wrong code at the address, if that was not done, and over
// all. Very many raise an alarm in the log.
func (s *Service) missed(ctx context.Context, mine, here string, wrong error) error {
	all, err := s.store.Miss(ctx, "code:all", missWindow)
	if err != nil {
		return err
	}
	if all%alarmMisses == 0 {
		s.log.WarnContext(ctx, "very many wrong user codes: someone is guessing", "count", all, "window", missWindow)
	}
	if mine == here {
		return wrong
	}
	n, err := s.store.Miss(ctx, here, missWindow)
	if err != nil {
		return err
	}
	if n > maxMisses {
		return errTooMany
	}
	return wrong
}

var errNotACode = &snap.Error{
	Code:   snap.CodeNotFound,
	Detail: "this is not a code of ours",
	Hint:   "it has eight letters, such as BCDF-GHJK; check it in your terminal",
}
