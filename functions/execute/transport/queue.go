package transport

import (
	"sync"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// coalesce is up to how many bytes pieces of one stream are put together that
// wait to be sent.
const coalesce = 32 << 10

// queue stands between an execution and a client that may be slow: the sandbox
// never waits for it. What it holds is bounded by the execution's limits.
type queue struct {
	start   execution.Start
	started chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	events  []event
	last    *output // the last event, not encoded yet
	closed  bool
}

var _ execute.Sink = (*queue)(nil)

func newQueue(start execution.Start) *queue {
	q := &queue{start: start, started: make(chan struct{})}
	q.changed.L = &q.mu
	return q
}

// Start implements execute.Sink.
func (q *queue) Start(sandbox string) {
	q.start.SandboxName = sandbox
	q.put(event{execution.EventStart, q.start})
	close(q.started)
}

// Output implements execute.Sink.
func (q *queue) Output(stream wire.Stream, data []byte, skipped int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.last; l != nil && l.stream == stream && skipped == 0 && len(l.data)+len(data) <= coalesce {
		l.data = append(l.data, data...)
		return
	}
	q.seal()
	q.last = &output{stream: stream, data: append([]byte(nil), data...), skipped: skipped}
	q.changed.Signal()
}

// Result implements execute.Sink.
func (q *queue) Result(r execution.RichResult) { q.put(event{execution.EventResult, r}) }

// Artifact implements execute.Sink.
func (q *queue) Artifact(a execution.Artifact) { q.put(event{execution.EventArtifact, a}) }

// close puts the terminal event.
func (q *queue) close(x execution.Exit) {
	q.put(event{execution.EventExit, x})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Signal()
}

func (q *queue) put(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seal()
	q.events = append(q.events, e)
	q.changed.Signal()
}

// seal makes an event of the last output. mu is held.
func (q *queue) seal() {
	if q.last != nil {
		q.events = append(q.events, q.last.event())
		q.last = nil
	}
}

// take waits for events and returns all there are; more is false with the
// last of them.
func (q *queue) take() (batch []event, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) == 0 && q.last == nil && !q.closed {
		q.changed.Wait()
	}
	q.seal()
	batch, q.events = q.events, nil
	return batch, !q.closed
}
