package cloud

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/console"
	"snap/internal/limit"
	"snap/internal/loadcontrol"
)

// Limits bounds the load that the service accepts. 0 means the default, and -1 means no limit.
// docs/operations.md lists them in a table.
type Limits struct {
	MaxSnapshotSize int64 `yaml:"max_snapshot_size"` // bytes; 0 is 5 TiB, -1 is refused

	// Limits per user and per organization. Organization-level keys count together as one user.
	UploadsPerUser         int   `yaml:"uploads_per_user"`
	UploadsPerOrganization int   `yaml:"uploads_per_organization"`
	BytesPerUser           int64 `yaml:"bytes_per_user"`
	BytesPerOrganization   int64 `yaml:"bytes_per_organization"`

	// DiskReserve is the number of bytes that uploads leave free on data_dir's disk, for the
	// database and for requests that take access away.
	DiskReserve int64 `yaml:"disk_reserve"`

	// Limits per minute, shared by all replicas.
	RequestsPerCredential    int `yaml:"requests_per_credential"`
	RequestsPerAddress       int `yaml:"requests_per_address"`
	SignInRequestsPerAddress int `yaml:"sign_in_requests_per_address"`
	FailuresPerAddress       int `yaml:"failures_per_address"`

	// Limits of concurrent requests, for each process.
	ConcurrentRequests  int    `yaml:"concurrent_requests"`
	ConcurrentSignIns   int    `yaml:"concurrent_sign_ins"`
	ConcurrentTransfers int    `yaml:"concurrent_transfers"`
	QueuedRequests      int    `yaml:"queued_requests"`
	QueueWait           string `yaml:"queue_wait"`
	Connections         int    `yaml:"connections"`
}

// The default limits.
const (
	defaultPerCredential = 6000
	defaultPerAddress    = 60_000
	defaultSignIns       = 3000
	defaultTransfers     = 1000
	defaultQueued        = 1000
	defaultQueueWait     = 2 * time.Second
	defaultConnections   = 10_000
	defaultDiskReserve   = 256 << 20
	defaultSnapshotSize  = 5 << 40
)

// bound returns the effective limit; 0 means no limit.
func bound[N int | int64](configured, byDefault N) N { return max(0, cmp.Or(configured, byDefault)) }

// newControl returns the load control for the limits of the configuration.
func (s *Service) newControl(limiter *limit.Limiter) *loadcontrol.Control {
	l := s.config.Limits
	return loadcontrol.New(loadcontrol.Limits{
		PerAddress:        rate(l.RequestsPerAddress, defaultPerAddress),
		SignInsPerAddress: rate(l.SignInRequestsPerAddress, defaultSignIns),
		PerCredential:     rate(l.RequestsPerCredential, defaultPerCredential),
		Requests:          bound(l.ConcurrentRequests, defaultConcurrent()),
		SignIns:           bound(l.ConcurrentSignIns, defaultConcurrent()),
		Transfers:         bound(l.ConcurrentTransfers, defaultTransfers),
		Queued:            cmp.Or(bound(l.QueuedRequests, defaultQueued), math.MaxInt),
		Wait:              l.queueWait(),
	}, loadcontrol.Options{Limiter: limiter, Class: classOf, Address: s.address, Refused: s.countRefusal,
		Fail: s.writeError})
}

func (s *Service) countRefusal(reason string) {
	s.telemetry.metrics.refused.WithLabelValues(reason).Inc()
}

func classOf(r *http.Request) loadcontrol.Class {
	switch path := r.URL.Path; {
	case path == "/healthz" || path == "/readyz":
		return loadcontrol.Health
	case strings.HasPrefix(path, "/blobs/") || path == console.AuditExport:
		return loadcontrol.Transfer
	case strings.HasPrefix(path, "/auth/") || strings.HasPrefix(path, "/.well-known/") || path == api.PathAuthConfig:
		return loadcontrol.SignIn
	}
	return loadcontrol.Request
}

func rate(configured, byDefault int) limit.Rate { return limit.Rate(bound(configured, byDefault)) }

// diskReserve returns how many bytes uploads leave free; 0 means no reserve.
func (l Limits) diskReserve() int64 { return bound(l.DiskReserve, defaultDiskReserve) }

// DatabaseReserve returns the part of the disk reserve that is held for requests that take access
// away. Each of them needs a few kilobytes.
func (l Limits) DatabaseReserve() int64 { return l.diskReserve() / 16 }

// defaultConcurrent returns the default limit of concurrent requests. It exceeds the number of
// database connections, so that no connection is idle under load.
func defaultConcurrent() int { return 16 * max(4, runtime.NumCPU()) }

// queueWait returns how long a request may wait in the queue. It returns the default if the setting
// is empty, or invalid, which [Config.Check] reports.
func (l Limits) queueWait() time.Duration {
	if d, err := snap.ParseDuration(l.QueueWait); err == nil {
		return d
	}
	return defaultQueueWait
}

// check lists the mistakes in the limits.
func (l Limits) check() (wrong []string) {
	for field, value := range reflect.ValueOf(l).Fields() {
		name := "limits." + field.Tag.Get("yaml")
		switch {
		case !value.CanInt() || value.Int() >= 0:
		case field.Name == "MaxSnapshotSize":
			wrong = append(wrong, fmt.Sprintf("%s %d is negative; use 0 for the default", name, value.Int()))
		case value.Int() < -1:
			wrong = append(wrong, fmt.Sprintf("%s %d is negative; use 0 for the default or -1 for no limit", name,
				value.Int()))
		}
	}
	if d, err := snap.ParseDuration(l.QueueWait); l.QueueWait != "" && (err != nil || d > time.Minute) {
		wrong = append(wrong, "limits.queue_wait must be a duration such as 2s, and at most 1m")
	}
	return wrong
}
