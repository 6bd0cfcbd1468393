package local

import (
	"context"
	"time"

	"snap"
	"snap/internal/archive"
)

// Snapshot is a snapshot file on this machine.
type Snapshot struct {
	Target  string            `json:"target"`
	Name    string            `json:"name"`
	Type    snap.Type         `json:"type"`
	Engine  snap.Engine       `json:"engine"`
	Size    int64             `json:"size"`
	SHA256  string            `json:"sha256"`
	Created time.Time         `json:"created"`
	Path    string            `json:"-"`
	Cloud   map[string]string `json:"cloud,omitempty"` // cloud URL to snapshot ID, when it was pushed there or pulled from there
	Tables  []archive.Table   `json:"tables,omitempty"`
}

// Snapshots lists what is on this machine, newest first; target "" lists all.
func (a *Agent) Snapshots(target string) ([]Snapshot, error) { return nil, nil }

// Snapshot returns the one of this name.
func (a *Agent) Snapshot(name string) (Snapshot, error) { return Snapshot{}, errUnwritten }

// DeleteSnapshot removes the file and its sidecar.
func (a *Agent) DeleteSnapshot(name string) error { return errUnwritten }

// Verify reads the whole file and checks every checksum in it.
func (a *Agent) Verify(ctx context.Context, name string, p Progress) (archive.Manifest, error) {
	return archive.Manifest{}, errUnwritten
}

// snapshotFile returns where the file of a snapshot stands, or would. The
// error, of code invalid, refuses names that are no file name.
func (a *Agent) snapshotFile(target, name string) (string, error) { return "", errUnwritten }

// adopt takes a complete snapshot file that stands at its place (see
// snapshotFile) into the listing: it reads the manifest, checks that it says
// what the given record says, and writes the sidecar. Used after build and pull.
func (a *Agent) adopt(s Snapshot) (Snapshot, error) { return Snapshot{}, errUnwritten }

// noteCloud records that the snapshot is in the cloud under this ID.
func (a *Agent) noteCloud(s Snapshot, cloudURL, id string) (Snapshot, error) {
	return Snapshot{}, errUnwritten
}

// newest returns the newest local snapshot of a target; typ "" takes either.
// A sanitized one is never replaced by an original.
func (a *Agent) newest(target string, typ snap.Type) (Snapshot, error) {
	return Snapshot{}, errUnwritten
}
