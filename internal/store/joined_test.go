package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"snap/internal/store"
)

// Who asks while a read is running is not answered by it, for what they asked
// about may have changed since it began; and who waits together shares one.
func TestJoinedReadsBeginAfterTheyWereAskedFor(t *testing.T) {
	t.Parallel()
	began, end := make(chan int), make(chan struct{})
	reads := 0
	get := store.Join(func() (int, error) {
		reads++
		n := reads
		began <- n
		<-end
		return n, nil
	})
	first := make(chan int)
	go func() { n, _ := get(t.Context()); first <- n }()
	<-began // the first read runs
	const late = 20
	var got [late]int
	var asked, running sync.WaitGroup
	asked.Add(late)
	for i := range late {
		running.Go(func() {
			asked.Done()
			got[i], _ = get(t.Context())
		})
	}
	asked.Wait()
	end <- struct{}{}
	if n := <-first; n != 1 {
		t.Errorf("the first was answered by read %d", n)
	}
	go func() { running.Wait(); close(began) }()
	for range began {
		end <- struct{}{}
	}
	for i, n := range got {
		if n < 2 {
			t.Errorf("caller %d asked while read 1 was running, and was answered by it", i)
		}
	}
}

// Concurrent callers share reads, and each sees what was set before they asked.
func TestJoinedReadsSeeWhatWasBefore(t *testing.T) {
	t.Parallel()
	var value, reads atomic.Int64
	get := store.Join(func() (int64, error) { reads.Add(1); return value.Load(), nil })
	var running sync.WaitGroup
	const callers, times = 16, 500
	for range callers {
		running.Go(func() {
			for range times {
				before := value.Add(1)
				if got, err := get(t.Context()); err != nil || got < before {
					t.Errorf("read %d, %v after %d was there", got, err, before)
				}
			}
		})
	}
	running.Wait()
	if n := reads.Load(); n > callers*times {
		t.Errorf("%d reads for %d calls", n, callers*times)
	}
}

// A read that fails fails for those who waited for it; who gives up waits no
// longer.
func TestJoinedReadsFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := store.Join(func() (int, error) { return 0, broken })(t.Context()); !errors.Is(err, broken) {
		t.Errorf("a read that failed: %v", err)
	}
	wait := make(chan struct{})
	defer close(wait)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Join(func() (int, error) { <-wait; return 0, nil })(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up: %v", err)
	}
}
