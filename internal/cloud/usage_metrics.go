package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"snap/internal/disk"
	"snap/internal/store"
)

// usageMaxAge is how long the figures of organizations are cached, because it is expensive to add
// up all snapshots at every scrape.
const usageMaxAge = 5 * time.Minute

// usageCollector reports the usage of each configured organization, and the free space of the disk.
type usageCollector struct {
	service                          *Service
	stored, snapshots, uploads, free *prometheus.Desc

	mu   sync.Mutex
	seen time.Time
	have map[string]store.Usage // by slug
}

func newUsageCollector(s *Service) *usageCollector {
	const cached = ". Cached for five minutes, and longer while the database does not answer."
	org := []string{"organization"}
	return &usageCollector{
		service: s,
		stored: prometheus.NewDesc("snapcloud_stored_bytes",
			"Bytes of an organization's snapshots"+cached, org, nil),
		snapshots: prometheus.NewDesc("snapcloud_snapshots", "Number of an organization's snapshots"+cached, org, nil),
		uploads: prometheus.NewDesc("snapcloud_open_uploads",
			"Number of an organization's unfinished uploads"+cached, org, nil),
		free: prometheus.NewDesc("snapcloud_disk_free_bytes", "Bytes that are free on the disk of data_dir.", nil, nil),
	}
}

// Describe implements [prometheus.Collector].
func (c *usageCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.stored, c.snapshots, c.uploads, c.free} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *usageCollector) Collect(to chan<- prometheus.Metric) {
	for slug, u := range c.usage() {
		to <- prometheus.MustNewConstMetric(c.stored, prometheus.GaugeValue, float64(u.Bytes), slug)
		to <- prometheus.MustNewConstMetric(c.snapshots, prometheus.GaugeValue, float64(u.Snapshots), slug)
		to <- prometheus.MustNewConstMetric(c.uploads, prometheus.GaugeValue, float64(u.Uploads), slug)
	}
	if free, known := disk.Free(c.service.config.DataDir); known {
		to <- prometheus.MustNewConstMetric(c.free, prometheus.GaugeValue, float64(free))
	}
}

// usage returns the cached figures. It reads them again when they are too old. While the database
// does not answer, it returns the previous figures.
func (c *usageCollector) usage() map[string]store.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.service.now(); c.have == nil || now.Sub(c.seen) >= usageMaxAge {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if have, err := c.service.usageOfAll(ctx); err == nil {
			c.have, c.seen = have, now
		}
	}
	return c.have
}

func (s *Service) usageOfAll(ctx context.Context) (map[string]store.Usage, error) {
	have := map[string]store.Usage{}
	for _, o := range s.config.Organizations {
		org, err := s.store.OrgBySlug(ctx, o.Slug)
		if err != nil {
			return nil, err
		}
		if have[o.Slug], err = s.store.OrgUsage(ctx, org.ID); err != nil {
			return nil, err
		}
	}
	return have, nil
}
