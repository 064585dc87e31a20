package httpapi

import (
	"context"
	"sync"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/internal/budget"
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
// however small pieces it comes, and is taken from the budget of the process
// until it is sent: when that is used up, the execution ends. The order of
// arrival is kept unless the client is thousands of events behind, the order
// within a stream always.
type queue struct {
	start   execution.Start
	started chan struct{}
	memory  *budget.Reserve

	mu      sync.Mutex
	changed sync.Cond
	events  []event
	// newest are the last waiting pieces of each stream, to which more may
	// be added.
	newest [2]*output
	closed bool
}

// queueReserve is what each queue may hold in any case.
const queueReserve = 64 << 10

// event is one event of a stream. Output is not encoded before it is sent.
type event struct {
	name string
	data any
	// size is the memory that it takes until it is sent, beside an output's.
	size int
}

// output is a piece of a stream.
type output struct {
	data    []byte
	skipped int64
}

var _ execute.Sink = (*queue)(nil)

// newQueue returns a queue within the memory of ctx's exchange.
func newQueue(ctx context.Context, start execution.Start) (*queue, error) {
	memory, err := budget.NewReserve(ctx, queueReserve)
	if err != nil {
		return nil, err
	}
	q := &queue{start: start, started: make(chan struct{}), memory: memory}
	q.changed.L = &q.mu
	return q, nil
}

// Start implements execute.Sink.
func (q *queue) Start(sandbox string) {
	q.start.SandboxName = sandbox
	q.mu.Lock()
	q.add(event{name: execution.EventStart, data: q.start})
	q.mu.Unlock()
	close(q.started)
}

// Output implements execute.Sink.
func (q *queue) Output(stream execution.Stream, data []byte, skipped int64) error {
	if err := q.memory.Take(int64(len(data))); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if o := q.newest[stream]; o != nil && skipped == 0 && (len(q.events) >= crowded || q.isLast(o) && len(o.data)+len(data) <= coalesce) {
		o.data = append(o.data, data...)
		return nil
	}
	o := &output{data: append([]byte(nil), data...), skipped: skipped}
	q.newest[stream] = o
	name := execution.EventStdout
	if stream == execution.Stderr {
		name = execution.EventStderr
	}
	q.add(event{name: name, data: o})
	return nil
}

func (q *queue) isLast(o *output) bool { return q.events[len(q.events)-1].data == any(o) }

// Result implements execute.Sink.
func (q *queue) Result(r execution.RichResult) error {
	return q.put(event{name: execution.EventResult, data: r, size: r.Size() + r.EncodedSize()})
}

// Artifact implements execute.Sink.
func (q *queue) Artifact(a execution.Artifact) error {
	return q.put(event{name: execution.EventArtifact, data: a, size: len(a.Content) + execution.EncodedTextSize(a.Content)})
}

// close puts the terminal event.
func (q *queue) close(exit any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.add(event{name: execution.EventExit, data: exit})
}

func (q *queue) put(e event) error {
	if err := q.memory.Take(int64(e.size)); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(e)
	return nil
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

// send sends an event, a large piece of output as several, and gives back the
// memory of what was sent.
func (q *queue) send(e event, send func(name string, data any) error) error {
	o, ok := e.data.(*output)
	if !ok {
		defer q.memory.Give(int64(e.size))
		return send(e.name, e.data)
	}
	for data, skipped := o.data, o.skipped; ; skipped = 0 {
		n := pieceEnd(data)
		content, encoding := execution.Encode(data[:n])
		if err := send(e.name, execution.Output{Data: content, Encoding: encoding, Skipped: skipped}); err != nil {
			return err
		}
		q.memory.Give(int64(n))
		if data = data[n:]; len(data) == 0 {
			return nil
		}
	}
}

// pieceEnd is where the first event of a piece of output ends: between runes.
func pieceEnd(data []byte) int {
	if len(data) <= coalesce {
		return len(data)
	}
	for end := coalesce; end > coalesce-utf8.UTFMax; end-- {
		if utf8.RuneStart(data[end]) {
			return end
		}
	}
	return coalesce
}
