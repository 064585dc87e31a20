package execute

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/api/execution"
)

// Metrics are execute's measurements.
type Metrics struct {
	executions *prometheus.CounterVec
	problems   *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	inFlight   prometheus.Gauge
}

// NewMetrics registers the measurements.
func NewMetrics(r prometheus.Registerer) *Metrics {
	buckets := []float64{.001, .002, .004, .008, .015, .03, .06, .125, .25, .5, 1, 2, 5, 10, 30, 60, 120, 300}
	m := &Metrics{
		executions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "preheat_executions_total", Help: "Executions that ended, by how they ended.",
		}, []string{"language", "status"}),
		problems: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "preheat_execution_problems_total", Help: "Executions that the platform failed, by status code.",
		}, []string{"code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "preheat_execution_seconds", Help: "Time from the accepted request to the result.", Buckets: buckets,
		}, []string{"language"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "preheat_executions_in_flight", Help: "Executions that have begun and not ended.",
		}),
	}
	r.MustRegister(m.executions, m.problems, m.seconds, m.inFlight)
	return m
}

func (m *Metrics) observe(language string, r *execution.Result, err error) {
	var p *execution.Problem
	if errors.As(err, &p) {
		m.problems.WithLabelValues(strconv.Itoa(p.Status)).Inc()
		return
	}
	m.executions.WithLabelValues(language, string(r.Status)).Inc()
	m.seconds.WithLabelValues(language).Observe(r.TimingsMS.Total / 1000)
}
