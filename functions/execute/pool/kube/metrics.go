package kube

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/internal/metric"
)

// Metrics are the measurements of claims. Those of the pools are the
// controller's.
type Metrics struct {
	claim                          *prometheus.HistogramVec
	conflicts, misses, unreachable *prometheus.CounterVec
	suspended                      *prometheus.GaugeVec
}

// NewMetrics registers the measurements.
func NewMetrics(r prometheus.Registerer) *Metrics {
	return &Metrics{
		claim:       metric.NewHistogram(r, metric.ClaimSeconds, prometheus.ExponentialBuckets(0.001, 2, 16)),
		conflicts:   metric.NewCounter(r, metric.ClaimConflicts),
		misses:      metric.NewCounter(r, metric.PoolMisses),
		unreachable: metric.NewCounter(r, metric.PoolUnreachable),
		suspended:   metric.NewGauge(r, metric.PoolSuspended),
	}
}
