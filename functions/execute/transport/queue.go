package transport

import (
	"sync"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
)

const (
	// coalesce is up to how many bytes pieces of one stream are put together
	// that wait to be sent.
	coalesce = 32 << 10
	// crowded is the number of waiting events from which on pieces of one
	// stream are put together across those of the other.
	crowded = 4096
)

// queue stands between an execution and a client that may be slow: the sandbox
// never waits for it. What it holds is bounded by the execution's limits, in
// however small pieces it comes: the order of arrival is kept unless the
// client is thousands of events behind, the order within a stream always.
type queue struct {
	start   execution.Start
	started chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	events  []event
	// newest are the last waiting pieces of each stream, to which more may
	// be added.
	newest [2]*output
	closed bool
}

// event is one event of a stream. Output is not encoded before it is sent.
type event struct {
	name string
	data any
}

// output is a piece of a stream.
type output struct {
	data    []byte
	skipped int64
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
func (q *queue) Output(stream execution.Stream, data []byte, skipped int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o := q.newest[stream]; o != nil && skipped == 0 && (len(q.events) >= crowded || q.isLast(o) && len(o.data)+len(data) <= coalesce) {
		o.data = append(o.data, data...)
		return
	}
	o := &output{data: append([]byte(nil), data...), skipped: skipped}
	q.newest[stream] = o
	name := execution.EventStdout
	if stream == execution.Stderr {
		name = execution.EventStderr
	}
	q.add(event{name, o})
}

func (q *queue) isLast(o *output) bool { return q.events[len(q.events)-1].data == any(o) }

// Result implements execute.Sink.
func (q *queue) Result(r execution.RichResult) { q.put(event{execution.EventResult, r}) }

// Artifact implements execute.Sink.
func (q *queue) Artifact(a execution.Artifact) { q.put(event{execution.EventArtifact, a}) }

// close puts the terminal event.
func (q *queue) close(x execution.Exit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.add(event{execution.EventExit, x})
}

func (q *queue) put(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(e)
}

// add appends with mu held.
func (q *queue) add(e event) {
	q.events = append(q.events, e)
	q.changed.Signal()
}

// take waits for events and returns all there are; more is false with the
// last of them.
func (q *queue) take() (batch []event, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) == 0 && !q.closed {
		q.changed.Wait()
	}
	batch, q.events = q.events, nil
	q.newest = [2]*output{}
	return batch, !q.closed
}

// payload is the event's data as it is sent.
func (e event) payload() any {
	o, ok := e.data.(*output)
	if !ok {
		return e.data
	}
	content, encoding := execution.Encode(o.data)
	return execution.Output{Data: content, Encoding: encoding, Skipped: o.skipped}
}
