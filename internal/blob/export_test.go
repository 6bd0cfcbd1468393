package blob

import "context"

// HoldFolder blocks the rehashing of an upload's parts until release is called. Listings of its
// parts do not wait for that.
func HoldFolder(s Store, upload string) (release func()) {
	f, ok := s.(*Folder)
	if !ok {
		return func() {}
	}
	f.recheckWait = 0
	held := make(chan struct{})
	work := f.rechecks.begin(context.Background(), upload, func(context.Context) error {
		<-held
		return nil
	})
	return func() {
		close(held)
		<-work.done
	}
}
