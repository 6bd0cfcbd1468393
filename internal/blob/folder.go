package blob

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// PartsPath is where a [Folder]'s handler takes parts, below the public URL.
const PartsPath = "/blobs/parts/"

var errUnwritten = errors.New("not written yet")

// Folder is a [Store] in a folder of the local disk.
type Folder struct{}

// OpenFolder opens the store in dir, making it when it is missing. Part URLs
// are {publicURL}/blobs/parts/<token>; secret signs the tokens.
func OpenFolder(dir, publicURL string, secret []byte, now func() time.Time) (*Folder, error) {
	return nil, errUnwritten
}

// Handler serves the PUT of parts below /blobs/parts/. The token in the URL is
// the whole permission.
func (f *Folder) Handler() http.Handler { return http.NotFoundHandler() }

func (f *Folder) Begin(ctx context.Context, key string, size, partSize int64) (string, error) {
	return "", errUnwritten
}
func (f *Folder) SignPart(ctx context.Context, key, upload string, p Part, life time.Duration) (Signed, error) {
	return Signed{}, errUnwritten
}
func (f *Folder) Parts(ctx context.Context, key, upload string) ([]Part, error) {
	return nil, errUnwritten
}
func (f *Folder) Complete(ctx context.Context, key, upload string, size int64, sha256 string) error {
	return errUnwritten
}
func (f *Folder) Abort(ctx context.Context, key, upload string) error            { return errUnwritten }
func (f *Folder) Serve(w http.ResponseWriter, r *http.Request, key, etag string) {}
func (f *Folder) Stat(ctx context.Context, key string) (int64, error)            { return 0, errUnwritten }
func (f *Folder) Delete(ctx context.Context, key string) error                   { return errUnwritten }
func (f *Folder) ListUploads(ctx context.Context) ([]Pending, error)             { return nil, errUnwritten }
func (f *Folder) Ping(ctx context.Context) error                                 { return errUnwritten }
