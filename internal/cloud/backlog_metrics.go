package cloud

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// backlogCollector reports the number and age of messages that wait to be sent to the webhooks of
// the service. Every replica reports the same figures, from the database.
type backlogCollector struct {
	service                 *Service
	messages, age, webhooks *prometheus.Desc
}

func newBacklogCollector(s *Service) *backlogCollector {
	return &backlogCollector{
		service: s,
		messages: prometheus.NewDesc("snapcloud_webhook_backlog",
			"Messages that wait to be sent to webhooks that are not disabled.", nil, nil),
		age: prometheus.NewDesc("snapcloud_webhook_backlog_age_seconds",
			"Age of the oldest message that waits to be sent.", nil, nil),
		webhooks: prometheus.NewDesc("snapcloud_webhooks", "Webhooks by state: ok, paused after failures, disabled.",
			[]string{"state"}, nil),
	}
}

// Describe implements [prometheus.Collector].
func (c *backlogCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.messages, c.age, c.webhooks} {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. It reports nothing while the database does not answer.
func (c *backlogCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	b, err := c.service.store.Backlog(ctx)
	if err != nil {
		return
	}
	age := 0.0
	if !b.Oldest.IsZero() {
		age = max(0, c.service.now().Sub(b.Oldest).Seconds())
	}
	to <- prometheus.MustNewConstMetric(c.messages, prometheus.GaugeValue, float64(b.Messages))
	to <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, age)
	for state, n := range b.Webhooks {
		to <- prometheus.MustNewConstMetric(c.webhooks, prometheus.GaugeValue, float64(n), state)
	}
}
