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
func (s *Service) pendingGrant(v *visit, typed string) (store.DeviceGrant, error) {
	ctx := v.r.Context()
	here := "code:address:" + s.address(v.r)
	mine := here
	if v.signedIn() {
		mine = "code:user:" + formatID(v.caller.User.ID)
	}
	if n, err := s.store.Misses(ctx, mine); err != nil || n >= maxMisses {
		return store.DeviceGrant{}, errors.Join(err, tooMany(n))
	}
	code, ok := cleanUserCode(typed)
	var g store.DeviceGrant
	err := error(errNotACode)
	if ok {
		g, err = s.store.PendingDevice(ctx, code)
	}
	if !errors.Is(err, snap.ErrNotFound) {
		return g, err
	}
	at, countErr := s.countMiss(ctx, here)
	if countErr == nil && mine != here {
		_, countErr = s.countMiss(ctx, mine)
	}
	if countErr != nil {
		return store.DeviceGrant{}, countErr
	}
	if at > maxMisses {
		return store.DeviceGrant{}, errTooMany
	}
	return store.DeviceGrant{}, err
}

var errNotACode = &snap.Error{
	Code:   snap.CodeNotFound,
	Detail: "this is not a code of ours",
	Hint:   "it has eight letters, such as BCDF-GHJK; check it in your terminal",
}

func tooMany(n int) error {
	if n >= maxMisses {
		return errTooMany
	}
	return nil
}

// countMiss counts a wrong code, and raises an alarm in the log when there are
// very many over all.
func (s *Service) countMiss(ctx context.Context, bucket string) (int, error) {
	n, err := s.store.Miss(ctx, bucket, missWindow)
	if err != nil {
		return 0, err
	}
	all, err := s.store.Miss(ctx, "code:all", missWindow)
	if err == nil && all%alarmMisses == 0 {
		s.log.WarnContext(ctx, "very many wrong user codes: someone is guessing", "count", all, "window", missWindow)
	}
	return n, err
}
