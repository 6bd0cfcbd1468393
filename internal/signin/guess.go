package signin

import (
	"context"
	"errors"
	"time"

	"snap"
	"snap/internal/store"
)

// Guessing is limited by user, by address and by account. Only wrong guesses are counted, so
// correct ones never lock anybody out.
const (
	maxMisses       = 5 // wrong codes, and wrong passwords for one account from one address
	missWindow      = 10 * time.Minute
	maxAddressTries = 50  // wrong passwords from one address, which an office may share
	maxAccountTries = 200 // wrong passwords for one account, from all addresses
	alarmMisses     = 100
)

var errTooMany = &snap.Error{
	Code:   snap.CodeRateLimited,
	Detail: "too many wrong attempts",
	Hint:   "wait ten minutes and try again",
}

// pendingGrant returns the pending login with a user code. Wrong codes are counted by user and by
// address. A user with too many wrong codes is refused. At an address with too many, only
// signed-out visitors are refused, because other people may share the address.
func (s *Service) pendingGrant(v *visit, typed string) (store.DeviceGrant, error) {
	ctx := v.r.Context()
	own := "code:address:" + s.address(v.r)
	buckets := map[string]int{own: maxMisses}
	if v.signedIn() {
		own = "code:user:" + formatID(v.caller.User.ID)
		buckets[own] = maxMisses
	}
	var g store.DeviceGrant
	err := s.guess(ctx, own, buckets, func() (err error) {
		g, err = s.lookUpCode(ctx, typed)
		return err
	})
	if errors.Is(err, snap.ErrNotFound) {
		s.countWrongCode(ctx)
	}
	if err == nil && v.signedIn() && !g.Opened {
		err = s.store.OpenDevice(ctx, g.UserCode)
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

// guess calls check, which checks a code or a password. A wrong guess (not_found or
// unauthenticated) is counted in every bucket. The map buckets has the maximum count of each. guess
// fails with errTooMany, without a call of check, if the bucket own has already reached its
// maximum. It fails in the same way if a wrong guess exceeds the maximum of any bucket, or if the
// bucket own has exceeded its maximum by the time of a right guess. Concurrent guesses therefore
// reveal no more than sequential ones.
func (s *Service) guess(ctx context.Context, own string, buckets map[string]int, check func() error) error {
	if err := s.requireFewMisses(ctx, own, buckets[own]); err != nil {
		return err
	}
	wrong := check()
	if wrong == nil {
		return s.requireFewMisses(ctx, own, buckets[own]+1)
	}
	if !errors.Is(wrong, snap.ErrNotFound) && !errors.Is(wrong, snap.ErrUnauthenticated) {
		return wrong
	}
	for bucket, max := range buckets {
		n, err := s.store.Miss(ctx, bucket, missWindow)
		if err != nil {
			return err
		}
		if n > max {
			wrong = errTooMany
		}
	}
	return wrong
}

func (s *Service) requireFewMisses(ctx context.Context, bucket string, max int) error {
	n, err := s.store.Misses(ctx, bucket)
	if err == nil && n >= max {
		err = errTooMany
	}
	return err
}

// countWrongCode counts a wrong code over all users and addresses. Every alarmMisses wrong codes,
// it logs a warning.
func (s *Service) countWrongCode(ctx context.Context) {
	n, err := s.store.Miss(ctx, "code:all", missWindow)
	if err != nil {
		s.log.ErrorContext(ctx, "count wrong codes", "error", err)
	} else if n%alarmMisses == 0 {
		s.log.WarnContext(ctx, "too many wrong user codes: someone is guessing", "count", n, "window", missWindow)
	}
}

var errNotACode = &snap.Error{
	Code:   snap.CodeNotFound,
	Detail: "that code isn't valid",
	Hint:   "it has eight letters, such as BCDF-GHJK; check it in your terminal",
}
