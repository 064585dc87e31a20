package local

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/internal/plan"
)

// Metrics are the pool's measurements; their names are those of the
// controller's.
type Metrics struct {
	warm, warming, claimed, desired, waiting *prometheus.GaugeVec
	misses, leaks                            *prometheus.CounterVec
	refill, claim                            *prometheus.HistogramVec
}

// NewMetrics registers the measurements.
func NewMetrics(r prometheus.Registerer) *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"pool"})
		r.MustRegister(g)
		return g
	}
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"pool"})
		r.MustRegister(c)
		return c
	}
	m := &Metrics{
		warm:    gauge("preheat_pool_warm", "Sandboxes that wait for a claim."),
		warming: gauge("preheat_pool_warming", "Sandboxes that are being made."),
		claimed: gauge("preheat_pool_claimed", "Sandboxes that are in use."),
		desired: gauge("preheat_pool_desired", "Warm sandboxes that the pool aims at."),
		waiting: gauge("preheat_pool_waiting", "Claims that wait for a sandbox."),
		misses:  counter("preheat_pool_misses_total", "Claims that found no warm sandbox."),
		leaks:   counter("preheat_pool_leaks_total", "Sandboxes whose removal has failed several times and goes on."),
		refill: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "preheat_refill_seconds", Help: "Time to make a sandbox warm.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
		}, []string{"pool"}),
	}
	m.claim = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "preheat_claim_seconds", Help: "Time to get a sandbox, fast from the warm ones or slow by waiting.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
	}, []string{"path"})
	r.MustRegister(m.refill, m.claim)
	return m
}

func (m *Metrics) observe(wp *warmPool) {
	n := wp.counts()
	name := wp.config.Name
	m.warm.WithLabelValues(name).Set(float64(n[plan.Warm]))
	m.warming.WithLabelValues(name).Set(float64(n[plan.Warming]))
	m.claimed.WithLabelValues(name).Set(float64(n[plan.Claimed]))
	m.desired.WithLabelValues(name).Set(float64(wp.desired))
	m.waiting.WithLabelValues(name).Set(float64(len(wp.waiting)))
}
