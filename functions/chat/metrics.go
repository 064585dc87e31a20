package chat

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of a completion, beside the classes of HTTP status.
const (
	outcomeCancelled   = "cancelled"
	outcomeTimeout     = "timeout"
	outcomeUnreachable = "unreachable"
	outcomeError       = "error_event"
	outcomeCut         = "cut"
)

const sourceDemo = "demo"

// metrics are about requests to language models.
type metrics struct {
	first    *prometheus.HistogramVec
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 19)
	return &metrics{
		first: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "preheat_chat_first_byte_seconds", Help: "Time from a chat request to the first byte of its answer.", Buckets: buckets,
		}, []string{"source"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "preheat_chat_request_seconds", Help: "Time from a chat request to the end of its answer.", Buckets: buckets,
		}, []string{"source", "outcome"}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.first, m.duration} {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) begin(source string) *observation {
	return &observation{metrics: m, source: source, start: time.Now()}
}

// observation is one request.
type observation struct {
	metrics *metrics
	source  string
	start   time.Time
	first   sync.Once
}

func (o *observation) firstByte() {
	o.first.Do(func() { o.metrics.first.WithLabelValues(o.source).Observe(since(o.start)) })
}

func (o *observation) end(outcome string) {
	o.metrics.duration.WithLabelValues(o.source, outcome).Observe(since(o.start))
}
