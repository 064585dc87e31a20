package kube

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the measurements of claims. Those of the pools are the
// controller's.
type Metrics struct {
	claim                          *prometheus.HistogramVec
	conflicts, misses, unreachable *prometheus.CounterVec
	suspended                      *prometheus.GaugeVec
}

// NewMetrics registers the measurements.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		claim: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "preheat_claim_seconds", Help: "Time to get a sandbox, fast from the warm ones or slow by waiting.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"path"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "preheat_claim_conflicts_total", Help: "Sandboxes that someone else claimed first.",
		}, []string{"pool"}),
		misses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "preheat_pool_misses_total", Help: "Claims that found no warm sandbox.",
		}, []string{"pool"}),
		unreachable: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "preheat_pool_unreachable_total", Help: "Sandboxes whose runner could not be reached.",
		}, []string{"pool"}),
		suspended: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "preheat_pool_suspended", Help: "1 while no sandbox is claimed since runners cannot be reached.",
		}, []string{"pool"}),
	}
	r.MustRegister(m.claim, m.conflicts, m.misses, m.unreachable, m.suspended)
	return m
}
