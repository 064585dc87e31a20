package local

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/internal/metric"
	"github.com/preheat-dev/preheat/internal/plan"
)

// Metrics are the pool's measurements.
type Metrics struct {
	warm, warming, claimed, desired, waiting *prometheus.GaugeVec
	misses, leaks                            *prometheus.CounterVec
	refill, claim                            *prometheus.HistogramVec
	sessions                                 *prometheus.GaugeVec
	sessionsEnded                            *prometheus.CounterVec
}

// NewMetrics registers the measurements.
func NewMetrics(r prometheus.Registerer) *Metrics {
	return &Metrics{
		warm:          metric.NewGauge(r, metric.PoolWarm),
		warming:       metric.NewGauge(r, metric.PoolWarming),
		claimed:       metric.NewGauge(r, metric.PoolClaimed),
		desired:       metric.NewGauge(r, metric.PoolDesired),
		waiting:       metric.NewGauge(r, metric.PoolWaiting),
		sessions:      metric.NewGauge(r, metric.SessionsOpen),
		sessionsEnded: metric.NewCounter(r, metric.SessionsEnded),
		misses:        metric.NewCounter(r, metric.PoolMisses),
		leaks:         metric.NewCounter(r, metric.PoolLeaks),
		refill:        metric.NewHistogram(r, metric.RefillSeconds, prometheus.ExponentialBuckets(0.01, 2, 12)),
		claim:         metric.NewHistogram(r, metric.ClaimSeconds, prometheus.ExponentialBuckets(0.001, 2, 16)),
	}
}

func (m *Metrics) observe(wp *warmPool) {
	n := wp.counts()
	name := wp.config.Name
	m.warm.WithLabelValues(name).Set(float64(n[plan.Warm]))
	m.warming.WithLabelValues(name).Set(float64(n[plan.Warming]))
	m.claimed.WithLabelValues(name).Set(float64(n[plan.Claimed]))
	m.desired.WithLabelValues(name).Set(float64(wp.desired))
	m.waiting.WithLabelValues(name).Set(float64(len(wp.waiting)))
	m.sessions.WithLabelValues(name).Set(float64(wp.sessions))
}
