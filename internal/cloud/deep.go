package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"snap"
	"snap/internal/blob"
	"snap/internal/store"
)

// Deep compares the rows of the database with the objects of the object store, in both directions.
// It changes nothing and may run while the service runs. It reads no object, so it takes about as
// long as listing the bucket.
//
// A snapshot whose bytes are missing is an error. Bytes that belong to no row only waste space, so
// they are a warning.
func Deep(ctx context.Context, c Config) ([]Verdict, error) {
	blobs, err := OpenBlobs(ctx, c)
	if err != nil {
		return nil, err
	}
	rows, err := store.References(ctx, c.StoreOptions())
	if err != nil {
		return nil, err
	}
	keys, err := blobs.List(ctx, "")
	if err != nil {
		return nil, err
	}
	// People may push and delete while Deep runs, so an error counts only if a second reading
	// confirms it.
	again, err := store.References(ctx, c.StoreOptions())
	if err != nil {
		return nil, err
	}
	d := comparison{blobs: blobs, rows: rows, again: again}
	lost, err := d.lost(ctx, keys)
	if err != nil {
		return nil, err
	}
	unknown := d.unknown(keys)
	snapshots := Verdict{What: "snapshots", Detail: "the bytes of every snapshot are there"}
	if len(lost) > 0 {
		snapshots.Err = errors.New("snapshots without bytes")
		snapshots.Detail = fmt.Sprintf("%d without bytes: %s", len(lost), strings.Join(lost, ", "))
	}
	objects := Verdict{What: "objects", Detail: "every object belongs to a row"}
	if len(unknown) > 0 {
		objects.Err, objects.Warning = errors.New("bytes without rows"), true
		objects.Detail = fmt.Sprintf("%d without a row: %s", len(unknown), strings.Join(unknown, ", "))
		objects.Unused = slices.DeleteFunc(unknown, func(key string) bool {
			return !strings.HasPrefix(key, snap.IDPrefix)
		})
	}
	return []Verdict{snapshots, objects}, nil
}

// comparison is one run of [Deep].
type comparison struct {
	blobs       blob.Store
	rows, again map[string]store.Reference
}

// lost returns the snapshots and archived audit lines whose bytes are missing, with their
// organizations.
func (c comparison) lost(ctx context.Context, keys []string) (lost []string, err error) {
	there := map[string]bool{}
	for _, key := range keys {
		there[key] = true
	}
	for key, r := range c.rows {
		if r.Org == "" || there[key] || c.again[key].Org == "" {
			continue
		}
		if _, err := c.blobs.Stat(ctx, key); err == nil {
			continue
		} else if !errors.Is(err, snap.ErrNotFound) {
			return nil, err
		}
		lost = append(lost, cmp.Or(r.Snapshot, "audit lines in "+key)+" of "+r.Org)
	}
	slices.Sort(lost)
	return lost, nil
}

// unknown returns the objects of snapshots and audit lines to which no row refers.
func (c comparison) unknown(keys []string) (unknown []string) {
	for _, key := range keys {
		_, before := c.rows[key]
		_, now := c.again[key]
		ours := strings.HasPrefix(key, snap.IDPrefix) || strings.HasPrefix(key, store.ArchivePrefix)
		if ours && !before && !now {
			unknown = append(unknown, key)
		}
	}
	return unknown
}
