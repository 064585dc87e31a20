package relay

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// NewMetrics returns metrics that are not registered.
func NewMetrics() *Metrics {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 19)
	return &Metrics{
		first: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "preheat_chat_first_byte_seconds", Help: "Time from a chat request to the first byte of its answer.", Buckets: buckets,
		}, []string{"source"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "preheat_chat_request_seconds", Help: "Time from a chat request to the end of its answer.", Buckets: buckets,
		}, []string{"source", "outcome"}),
	}
}

// Register registers them.
func (m *Metrics) Register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.first, m.duration} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
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
