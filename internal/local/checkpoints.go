package local

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"snap"
	"snap/api"
	"snap/internal/disk"
)

// checkpoints holds the last verified checkpoint of each audit log, by service and organization.
type checkpoints map[string]map[string]api.AuditCheckpoint

// CheckpointsPath returns the path of the checkpoint file.
func (a *Agent) CheckpointsPath() string { return filepath.Join(a.data, "audit-checkpoints.json") }

// Checkpoint returns the stored checkpoint for an organization of a service, or the zero value if
// there is none.
func (a *Agent) Checkpoint(service, organization string) (api.AuditCheckpoint, error) {
	all, err := a.checkpoints()
	return all[service][organization], err
}

func (a *Agent) checkpoints() (checkpoints, error) {
	all := checkpoints{}
	if err := disk.ReadJSON(a.CheckpointsPath(), &all); err != nil {
		return nil, snap.Usage(fmt.Sprintf("the checkpoint file %s cannot be read: %s", a.CheckpointsPath(),
			reason(err)), "restore the file from a backup; without it, earlier changes of the log cannot be detected")
	}
	return all, nil
}

// KeepCheckpoint stores a verified checkpoint in place of the previous one.
func (a *Agent) KeepCheckpoint(service, organization string, c api.AuditCheckpoint) error {
	return a.rewrite(a.CheckpointsPath(), "the checkpoint file", func() (any, error) {
		all, err := a.checkpoints()
		if err != nil {
			return nil, err
		}
		if all[service] == nil {
			all[service] = map[string]api.AuditCheckpoint{}
		}
		all[service][organization] = c
		return all, nil
	})
}

// rewrite replaces a JSON file of the data folder with the value that the function next returns. It
// locks the file, so that next can read it and no other process can change it in the meantime.
func (a *Agent) rewrite(path, what string, next func() (any, error)) error {
	if err := os.MkdirAll(a.data, 0o700); err != nil {
		return diskError(err, "create the data folder")
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return diskError(err, "lock "+what)
	}
	defer lock.Unlock()
	value, err := next()
	if err != nil {
		return err
	}
	return diskError(disk.ReplaceJSON(path, value), "write "+what)
}
