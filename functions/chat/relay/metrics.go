package relay

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/internal/metric"
)

// Outcomes of a completion, beside the classes of HTTP status.
const (
	OutcomeCancelled   = "cancelled"
	OutcomeTimeout     = "timeout"
	OutcomeUnreachable = "unreachable"
	outcomeError       = "error_event"
	outcomeCut         = "cut"
)

// Metrics are about requests to language models.
type Metrics struct {
	first    *prometheus.HistogramVec
	duration *prometheus.HistogramVec
}

// NewMetrics makes the metrics and registers them with r, if r is not nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 19)
	return &Metrics{
		first:    metric.NewHistogram(r, metric.ChatFirstByte, buckets),
		duration: metric.NewHistogram(r, metric.ChatRequest, buckets),
	}
}

// Begin begins to observe a request to a source of answers.
func (m *Metrics) Begin(source string) *Observation {
	return &Observation{metrics: m, source: source, start: time.Now()}
}

// Observation is one request.
type Observation struct {
	metrics *Metrics
	source  string
	start   time.Time
	first   sync.Once
}

// FirstByte notes the first byte of the answer.
func (o *Observation) FirstByte() {
	o.first.Do(func() { o.metrics.first.WithLabelValues(o.source).Observe(since(o.start)) })
}

// End notes how the request ended.
func (o *Observation) End(outcome string) {
	o.metrics.duration.WithLabelValues(o.source, outcome).Observe(since(o.start))
}

// OutcomeOf names a status for the metrics.
func OutcomeOf(status int) string { return fmt.Sprintf("%dxx", status/100) }

func since(t time.Time) float64 { return time.Since(t).Seconds() }
