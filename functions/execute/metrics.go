package execute

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/metric"
)

// Metrics are execute's measurements.
type Metrics struct {
	executions *prometheus.CounterVec
	problems   *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	// runs are those in sessions, by what became of the interpreter.
	runs *prometheus.CounterVec
}

// NewMetrics registers the measurements.
func NewMetrics(r prometheus.Registerer) *Metrics {
	buckets := []float64{.001, .002, .004, .008, .015, .03, .06, .125, .25, .5, 1, 2, 5, 10, 30, 60, 120, 300}
	return &Metrics{
		executions: metric.NewCounter(r, metric.Executions),
		problems:   metric.NewCounter(r, metric.ExecutionProblems),
		seconds:    metric.NewHistogram(r, metric.ExecutionSeconds, buckets),
		inFlight:   metric.NewGauge(r, metric.ExecutionsInFlight).WithLabelValues(),
		runs:       metric.NewCounter(r, metric.SessionRuns),
	}
}

func (m *Metrics) observe(language string, r *execution.Result, err error) {
	var p *execution.Problem
	if err != nil && r.Status == execution.StatusCancelled {
		m.executions.WithLabelValues(language, string(r.Status)).Inc()
		return
	}
	if errors.As(err, &p) {
		m.problems.WithLabelValues(strconv.Itoa(p.Status)).Inc()
		return
	}
	m.executions.WithLabelValues(language, string(r.Status)).Inc()
	m.seconds.WithLabelValues(language).Observe(r.TimingsMS.Total / 1000)
}
