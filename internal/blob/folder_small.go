package blob

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"snap/internal/disk"
)

// Write implements [Store].
func (f *Folder) Write(_ context.Context, key string, content []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	path := f.object(key)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return diskError("write the object", err)
	}
	making, err := os.CreateTemp(f.uploadsDir(), ".write-*")
	if err != nil {
		return diskError("write the object", err)
	}
	defer os.Remove(making.Name()) // fails harmlessly once the file has become the object
	_, err = making.Write(content)
	if err = errors.Join(err, making.Sync(), making.Close()); err == nil {
		err = rename(making.Name(), path)
	}
	return diskError("write the object", err)
}

// Read implements [Store].
func (f *Folder) Read(_ context.Context, key string) ([]byte, error) {
	file, err := os.Open(f.object(key))
	if err != nil {
		return nil, diskError("open the object", err)
	}
	defer file.Close()
	return readSmall(file)
}

func readSmall(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxSmall+1))
	if err == nil && len(content) > maxSmall {
		return nil, errNotSmall
	}
	return content, err
}

// List implements [Store].
func (f *Folder) List(_ context.Context, prefix string) ([]string, error) {
	var keys []string
	for _, file := range disk.Glob(f.objectsDir(), "[0-9a-f][0-9a-f]/*") {
		if key, err := url.PathUnescape(filepath.Base(file)); err == nil && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
