package blob_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"snap/internal/blob"
)

// Work that takes longer than the requests that wait for it continues without them
// and is done once for all of them. A request after its end starts it again.
func TestTasksOutlastRequests(t *testing.T) {
	t.Parallel()
	var tasks blob.Tasks
	release, failed := make(chan struct{}), errors.New("failed")
	begun := 0
	work := func(ctx context.Context) error {
		begun++
		<-release
		return errors.Join(failed, ctx.Err())
	}
	request, gone := context.WithCancel(t.Context())
	if ended, err := tasks.Join(request, "a", time.Microsecond, work); ended || err != nil {
		t.Errorf("ended %v, %v; want it to continue", ended, err)
	}
	gone()
	if ended, err := tasks.Join(request, "a", time.Hour, work); ended || !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ends during the work: %v, %v", ended, err)
	}
	if ended, err := tasks.Join(t.Context(), "a", 0, work); ended || err != nil {
		t.Errorf("a request that does not wait: %v, %v", ended, err)
	}
	close(release)
	ended, err := tasks.Join(t.Context(), "a", time.Hour, work)
	if !ended || !errors.Is(err, failed) || errors.Is(err, context.Canceled) {
		t.Errorf("ended %v, %v; want the work's own error", ended, err)
	}
	ended, err = tasks.Join(t.Context(), "b", time.Hour, func(context.Context) error { return nil })
	if !ended || err != nil {
		t.Errorf("another upload: %v, %v", ended, err)
	}
	before := begun // 2 if the last request for a arrived after the first work had ended
	ended, err = tasks.Join(t.Context(), "a", time.Hour, work)
	if !ended || !errors.Is(err, failed) || before > 2 || begun != before+1 {
		t.Errorf("ended %v, %v; the work was begun %d times, then %d times", ended, err, before, begun)
	}
}
