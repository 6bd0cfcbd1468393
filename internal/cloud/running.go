package cloud

import (
	"context"
	"time"

	"snap/internal/store"
)

// sayRunning records in the database that this process is running. It returns a function that keeps
// the record current until ctx is done. Commands that must not run next to the service, such as a
// transfer of its data, check that record.
func (s *Service) sayRunning(ctx context.Context, holder string) (goOn func()) {
	say := func(ctx context.Context) error { return s.store.SayRunning(ctx, holder) }
	if err := say(ctx); err != nil {
		s.log.WarnContext(ctx, "could not record that this process runs; trying again", "error", err)
	}
	return func() {
		s.repeat(ctx, "record that it runs", store.RunningLife/3, say)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := s.store.SayStopped(ctx, holder); err != nil {
			s.log.WarnContext(ctx, "could not record that this process has ended; it counts as running for a moment",
				"error", err)
		}
	}
}
