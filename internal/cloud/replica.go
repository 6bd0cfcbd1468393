package cloud

import (
	"context"
	"fmt"
	"time"

	"snap/internal/store"
)

// recordRunning records in the database that this process is running. It returns a function that
// keeps the record current until ctx is done, and then records that the process has stopped.
// Commands that must not run while the service runs, such as a transfer of its data, check that
// record.
func (s *Service) recordRunning(ctx context.Context, holder string) (keepCurrent func()) {
	record := func(ctx context.Context) error {
		if err := s.store.RecordRunning(ctx, holder); err != nil {
			return err
		}
		return s.compareClocks(ctx)
	}
	if err := record(ctx); err != nil {
		s.log.WarnContext(ctx, "could not record that this process runs; trying again", "error", err)
	}
	return func() {
		s.repeat(ctx, "record that it runs", store.RunningLife/3, record)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := s.store.RecordStopped(ctx, holder); err != nil {
			s.log.WarnContext(ctx, "could not record that this process has ended; it counts as running for a moment",
				"error", err)
		}
	}
}

// maxSkew is the largest accepted difference between the clocks of replicas. A lease lasts three
// times as long as the interval of its work. With a larger difference, two replicas could hold the
// lease of work that runs every second. The lease for numbering audit lines is shorter, but it does
// no harm if several replicas do that work at once.
const maxSkew = 2 * time.Second

// compareClocks writes a log line when the clocks of the replicas differ, and when they agree
// again.
func (s *Service) compareClocks(ctx context.Context) error {
	const clocks = "clocks of the replicas"
	skew, err := s.store.ClockSkew(ctx)
	if err != nil {
		return err
	}
	s.telemetry.metrics.clockSkew.WithLabelValues().Set(skew.Seconds())
	if skew > maxSkew {
		s.telemetry.outages.failed(ctx, clocks, errSkew(skew))
		return nil
	}
	s.telemetry.outages.worked(ctx, clocks)
	return nil
}

func errSkew(skew time.Duration) error {
	return fmt.Errorf("the clocks of the replicas differ by %v; synchronize them with a time server", skew)
}
