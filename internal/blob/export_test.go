package blob

import "context"

// HoldFolder keeps the parts of an upload from being hashed again until release is called. Listings
// of its parts do not wait for that.
func HoldFolder(s Store, upload string) (release func()) {
	f, ok := s.(*Folder)
	if !ok {
		return func() {}
	}
	f.patience = 0
	held := make(chan struct{})
	work := f.doubting.begin(context.Background(), upload, func(context.Context) error {
		<-held
		return nil
	})
	return func() {
		close(held)
		<-work.done
	}
}
