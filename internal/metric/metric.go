// Package metric has the names of all metrics, with what they mean, and makes
// those of the functions. The functions have Prometheus' client. The controller
// has OpenTelemetry's, since knative.dev/pkg measures its queues with that and
// exports all as config-observability says; the names are the same.
package metric

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Name is a metric's name.
type Name string

// All metrics. Their labels are in the table below.
const (
	Executions         Name = "preheat_executions_total"
	ExecutionProblems  Name = "preheat_execution_problems_total"
	ExecutionSeconds   Name = "preheat_execution_seconds"
	ExecutionsInFlight Name = "preheat_executions_in_flight"
	ClaimSeconds       Name = "preheat_claim_seconds"
	ClaimConflicts     Name = "preheat_claim_conflicts_total"
	PoolWarm           Name = "preheat_pool_warm"
	PoolWarming        Name = "preheat_pool_warming"
	PoolClaimed        Name = "preheat_pool_claimed"
	PoolDesired        Name = "preheat_pool_desired"
	PoolWaiting        Name = "preheat_pool_waiting"
	PoolMisses         Name = "preheat_pool_misses_total"
	PoolUnreachable    Name = "preheat_pool_unreachable_total"
	PoolSuspended      Name = "preheat_pool_suspended"
	PoolLeaks          Name = "preheat_pool_leaks_total"
	RefillSeconds      Name = "preheat_refill_seconds"
	EventRecords       Name = "preheat_event_records"
	EventAnswerBytes   Name = "preheat_event_answer_bytes"
	AnswersDropped     Name = "preheat_event_answers_dropped_total"
	RecordsRemoved     Name = "preheat_event_records_removed_total"
	MemoryBudget       Name = "preheat_memory_budget_bytes"
	MemoryUsed         Name = "preheat_memory_used_bytes"
	ChatFirstByte      Name = "preheat_chat_first_byte_seconds"
	ChatRequest        Name = "preheat_chat_request_seconds"
	AuditEvents        Name = "preheat_audit_events_total"
	SessionsOpen       Name = "preheat_sessions_open"
	SessionsEnded      Name = "preheat_sessions_ended_total"
	SessionRuns        Name = "preheat_session_runs_total"
)

// Description is what a metric means.
type Description struct {
	Name   Name
	Labels []string
	Help   string
}

// All describes all metrics. On a cluster those of pools have the label
// namespace, too, where the controller exports them.
func All() []Description {
	return []Description{
		{Executions, []string{"language", "status"}, "Executions that ended, by how they ended."},
		{ExecutionProblems, []string{"code"}, "Executions that the platform failed, by status code."},
		{ExecutionSeconds, []string{"language"}, "Time from the accepted request to the result."},
		{ExecutionsInFlight, nil, "Executions that have begun and not ended."},
		{ClaimSeconds, []string{"path"}, "Time to get a sandbox, fast from the warm ones or slow by waiting."},
		{ClaimConflicts, []string{"pool"}, "Sandboxes that someone else claimed first; on a cluster."},
		{PoolWarm, []string{"pool"}, "Sandboxes that are warm and unclaimed."},
		{PoolWarming, []string{"pool"}, "Sandboxes that are being made."},
		{PoolClaimed, []string{"pool"}, "Claimed sandboxes that still exist."},
		{PoolDesired, []string{"pool"}, "Warm sandboxes that the pool aims at."},
		{PoolWaiting, []string{"pool"}, "Claims that wait for a sandbox; on one machine."},
		{PoolMisses, []string{"pool"}, "Claims that found no warm sandbox: a larger pool would have helped."},
		{PoolUnreachable, []string{"pool"}, "Sandboxes whose runner could not be reached; on a cluster."},
		{PoolSuspended, []string{"pool"}, "1 while no sandbox is claimed, since three runners in a row could not be reached; on a cluster."},
		{PoolLeaks, []string{"pool"}, "Sandboxes whose removal has failed five times and goes on; on one machine."},
		{RefillSeconds, []string{"pool"}, "Time from a sandbox's creation until it is warm."},
		{EventRecords, nil, "Finished events that are on record; on a cluster."},
		{EventAnswerBytes, nil, "Bytes of compressed answers on record; on a cluster."},
		{AnswersDropped, nil, "Answers of events that made room for later ones; on a cluster."},
		{RecordsRemoved, nil, "Records of events that made room for later ones; on a cluster."},
		{MemoryBudget, nil, "Bytes that requests and results may hold, all together."},
		{MemoryUsed, nil, "Bytes that requests and results hold."},
		{ChatFirstByte, []string{"source"}, "Time from a chat request to the first byte of its answer."},
		{ChatRequest, []string{"source", "outcome"}, "Time from a chat request to the end of its answer."},
		{SessionsOpen, []string{"pool"}, "Sessions that are open."},
		{SessionsEnded, []string{"pool", "reason"}, "Sessions that ended, by why."},
		{SessionRuns, []string{"language", "state"}, "Runs in sessions, by what became of the interpreter."},
		{AuditEvents, []string{"result"}, "Completed events for the sink: sent, failed, or dropped at a full queue."},
	}
}

// Describe returns what n means.
func (n Name) Describe() Description {
	for _, d := range All() {
		if d.Name == n {
			return d
		}
	}
	panic("metric: " + string(n) + " is not described")
}

// NewRegistry returns a registry that has the metrics of the Go runtime and of
// the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// NewCounter makes a counter and registers it with r, if r is not nil.
func NewCounter(r prometheus.Registerer, n Name) *prometheus.CounterVec {
	d := n.Describe()
	return promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: string(n), Help: d.Help}, d.Labels)
}

// NewGauge makes a gauge and registers it with r, if r is not nil.
func NewGauge(r prometheus.Registerer, n Name) *prometheus.GaugeVec {
	d := n.Describe()
	return promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{Name: string(n), Help: d.Help}, d.Labels)
}

// NewGaugeFunc makes a gauge that has the value of f, and registers it with r.
func NewGaugeFunc(r prometheus.Registerer, n Name, f func() float64) {
	promauto.With(r).NewGaugeFunc(prometheus.GaugeOpts{Name: string(n), Help: n.Describe().Help}, f)
}

// NewHistogram makes a histogram and registers it with r, if r is not nil.
func NewHistogram(r prometheus.Registerer, n Name, buckets []float64) *prometheus.HistogramVec {
	d := n.Describe()
	return promauto.With(r).NewHistogramVec(prometheus.HistogramOpts{Name: string(n), Help: d.Help, Buckets: buckets}, d.Labels)
}
