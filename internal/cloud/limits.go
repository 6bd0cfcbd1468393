package cloud

import (
	"runtime"
	"time"

	"snap"
	"snap/internal/limit"
)

// Limits bound what is accepted. Zero is the default, and less than zero is no
// limit. docs/operations.md has the table.
type Limits struct {
	MaxSnapshotSize int64 `yaml:"max_snapshot_size" koanf:"max_snapshot_size"` // bytes; default 5 TiB

	// Of one user, of what organization-level keys push, and of an organization.
	UploadsPerUser         int   `yaml:"uploads_per_user" koanf:"uploads_per_user"`
	UploadsPerOrganization int   `yaml:"uploads_per_organization" koanf:"uploads_per_organization"`
	BytesPerUser           int64 `yaml:"bytes_per_user" koanf:"bytes_per_user"`
	BytesPerOrganization   int64 `yaml:"bytes_per_organization" koanf:"bytes_per_organization"`

	// DiskReserve is how many bytes of data_dir's disk uploads leave free, for the
	// database and for what takes access away.
	DiskReserve int64 `yaml:"disk_reserve" koanf:"disk_reserve"`

	// A minute, shared by all replicas.
	RequestsPerCredential    int `yaml:"requests_per_credential" koanf:"requests_per_credential"`
	RequestsPerAddress       int `yaml:"requests_per_address" koanf:"requests_per_address"`
	SignInRequestsPerAddress int `yaml:"sign_in_requests_per_address" koanf:"sign_in_requests_per_address"`
	FailuresPerAddress       int `yaml:"failures_per_address" koanf:"failures_per_address"`

	// At once, of one process.
	ConcurrentRequests  int    `yaml:"concurrent_requests" koanf:"concurrent_requests"`
	ConcurrentSignIns   int    `yaml:"concurrent_sign_ins" koanf:"concurrent_sign_ins"`
	ConcurrentTransfers int    `yaml:"concurrent_transfers" koanf:"concurrent_transfers"`
	QueuedRequests      int    `yaml:"queued_requests" koanf:"queued_requests"`
	QueueWait           string `yaml:"queue_wait" koanf:"queue_wait"`
	Connections         int    `yaml:"connections" koanf:"connections"`
}

// The defaults. A person with a terminal makes a few requests a second; a page
// of 50 snapshots costs about a millisecond of one core.
const (
	defaultPerCredential = 6000
	defaultPerAddress    = 60_000
	defaultSignIns       = 3000
	defaultTransfers     = 1000
	defaultQueued        = 1000
	defaultQueueWait     = 2 * time.Second
	defaultConnections   = 10_000
	defaultDiskReserve   = 256 << 20
)

// bound is a limit as it is used: 0 is none.
func bound(configured, byDefault int) int {
	switch {
	case configured < 0:
		return 0
	case configured == 0:
		return byDefault
	}
	return configured
}

func rate(configured, byDefault int) limit.Rate { return limit.Rate(bound(configured, byDefault)) }

// diskReserve returns how many bytes uploads leave free; 0 is no reserve.
func (l Limits) diskReserve() int64 {
	switch {
	case l.DiskReserve < 0:
		return 0
	case l.DiskReserve == 0:
		return defaultDiskReserve
	}
	return l.DiskReserve
}

// DatabaseReserve returns how much of it is held back for requests that take
// access away: each of them needs some kilobytes.
func (l Limits) DatabaseReserve() int64 { return l.diskReserve() / 16 }

// atOnce is how many requests are worked on at once by default: more than there
// are connections to the database, so that none of those is ever idle.
func atOnce() int { return 16 * max(4, runtime.NumCPU()) }

// queueWait returns how long a request waits for a place; what cannot be read
// was reported by [Config.Check].
func (l Limits) queueWait() time.Duration {
	if d, err := snap.ParseDuration(l.QueueWait); err == nil && l.QueueWait != "" {
		return d
	}
	return defaultQueueWait
}

// check returns what is wrong.
func (l Limits) check() (wrong []string) {
	if l.QueueWait == "" {
		return nil
	}
	if d, err := snap.ParseDuration(l.QueueWait); err != nil || d > time.Minute {
		wrong = append(wrong, "limits.queue_wait must be a duration such as 2s, and at most 1m")
	}
	return wrong
}
