package execute

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/budget"
)

// Sink takes an execution's events while it runs, in order and from one
// goroutine. Its methods must not block for long: the sandbox waits for them.
// An error ends the execution.
type Sink interface {
	Start(sandbox string)
	Output(stream execution.Stream, data []byte, skipped int64) error
	Result(execution.RichResult) error
	Artifact(execution.Artifact) error
}

// collector makes the result of an execution. With a sink it passes events on
// and keeps none of them: memory is bounded by the limits either way, also
// when the runner, which shares its sandbox with the program, does not keep to
// them, and by the process's budget.
type collector struct {
	sink    Sink
	started bool
	// left is how much more the runner may send; abort ends the run when it
	// is used up, or when there is no memory for what came.
	left   int64
	abort  context.CancelCauseFunc
	began  time.Time
	result execution.Result
	// streams are the kept bytes.
	streams [2]captured
	// memory is where the bytes are taken from that are kept. With lossy, what
	// finds none is left out and marked, and the run goes on.
	memory *budget.Reserve
	lossy  bool
}

// captured is what is kept of a stream, and the counts of what passed.
type captured struct {
	data   []byte
	counts execution.StreamTruncation
	// binary: not all of it is UTF-8. lost: there was no memory for the rest.
	binary, lost bool
}

// Bytes of memory for each captured one: it is held as it came and as text,
// and once more in base64 where it is not UTF-8. U+FFFD in place of every
// second byte doubles the text.
const (
	textCost   = 2
	binaryCost = 5
)

var _ pool.Sink = (*collector)(nil)

func newCollector(sink Sink, memory *budget.Reserve, left int64, began time.Time) *collector {
	return &collector{sink: sink, memory: memory, left: left, began: began, result: execution.Result{
		Status: execution.StatusPlatformError, Results: []execution.RichResult{}, Artifacts: []execution.Artifact{}, Notes: []string{},
	}}
}

// allowance is more than any runner sends that keeps to the limits. Each
// message counts one byte more than it holds; base64 makes 4 of 3 bytes, and
// the last term is for names and media types.
func allowance(l execution.Limits, s execution.ServerLimits) int64 {
	return 4*l.OutputBytes + 2*s.ResultBytes + 2*s.ArtifactBytes + int64(s.Results+s.Artifacts+1)<<16
}

var errExcess = errors.New("the sandbox sent more than it was allowed to")

// takes reports whether size more bytes may come.
func (c *collector) takes(size int) bool {
	if c.left -= int64(size) + 1; c.left >= 0 {
		return true
	}
	c.abort(errExcess)
	return false
}

// claimed notes the sandbox and what the time until now went to.
func (c *collector) claimed(s pool.Sandbox, at time.Time) {
	c.result.SandboxName = s.Name()
	spent := &c.result.TimingsMS.Claim
	if s.Queued() {
		spent = &c.result.TimingsMS.Queue
	}
	*spent = execution.Milliseconds(at.Sub(c.began))
}

// Started implements pool.Sink.
func (c *collector) Started() {
	if c.started {
		return
	}
	c.started = true
	if c.sink != nil {
		c.sink.Start(c.result.SandboxName)
	}
}

// pass ends the run when a sink refused what it was given.
func (c *collector) pass(err error) {
	if err != nil {
		c.abort(err)
	}
}

// keep takes n bytes of memory, and reports whether there were as many.
func (c *collector) keep(n int) bool {
	err := c.memory.Take(int64(n))
	if err != nil && !c.lossy {
		c.abort(err)
	}
	return err == nil
}

// Output implements pool.Sink.
func (c *collector) Output(stream execution.Stream, data []byte, skipped int64) {
	if !c.takes(len(data)) {
		return
	}
	s := &c.streams[stream]
	if c.sink == nil && !c.capture(s, data) {
		skipped, data = skipped+int64(len(data)), nil
	}
	n := &s.counts
	n.TotalBytes += skipped + int64(len(data))
	n.CapturedBytes += int64(len(data))
	if n.Truncated = n.Truncated || skipped > 0; !n.Truncated {
		n.HeadBytes = n.CapturedBytes
	}
	if c.sink != nil {
		c.pass(c.sink.Output(stream, data, skipped))
		return
	}
	s.data = append(s.data, data...)
}

// capture takes memory for a piece of a stream. Once a piece found none, there
// is none for the pieces after it: a stream has one gap at most.
func (c *collector) capture(s *captured, data []byte) bool {
	if s.lost {
		return false
	}
	cost, binary := textCost*len(data), s.binary || !utf8.Valid(data)
	if binary {
		cost = binaryCost * len(data)
		if !s.binary {
			cost += (binaryCost - textCost) * len(s.data)
		}
	}
	if s.lost = !c.keep(cost); s.lost {
		return false
	}
	s.binary = binary
	return true
}

// Result implements pool.Sink.
func (c *collector) Result(r execution.RichResult) {
	size := r.Size()
	if !c.takes(len(r.MIME) + size) {
		return
	}
	switch {
	case c.sink != nil:
		c.pass(c.sink.Result(r))
	case c.keep(size):
		c.result.Results = append(c.result.Results, r)
	default:
		c.note("A result of type " + r.MIME + " was left out: " + noMemory + ".")
	}
}

// Artifact implements pool.Sink.
func (c *collector) Artifact(a execution.Artifact) {
	if !c.takes(len(a.Path) + len(a.MIME) + len(a.Content)) {
		return
	}
	switch {
	case c.sink != nil:
		c.pass(c.sink.Artifact(a))
		return
	case !c.keep(len(a.Content)):
		a.Content, a.Encoding, a.Omitted = "", execution.EncodingUTF8, noMemory
	}
	c.result.Artifacts = append(c.result.Artifacts, a)
}

// noMemory is why something is left out.
const noMemory = "the server had no memory for it"

func (c *collector) note(text string) { c.result.Notes = append(c.result.Notes, text) }

// finish completes the result. The counts are those of what arrived, which
// hold even when the runner could not report its own.
func (c *collector) finish(o pool.Outcome) {
	r := &c.result
	r.Status, r.ExitCode, r.Usage = o.Status, o.ExitCode, o.Usage
	if o.Signal != "" {
		r.Signal = &o.Signal
	}
	out, err := &c.streams[execution.Stdout], &c.streams[execution.Stderr]
	r.Truncated = execution.Truncated{Stdout: out.counts, Stderr: err.counts}
	if reported := o.Truncated; reported != (execution.Truncated{}) {
		if !out.lost {
			r.Truncated.Stdout = reported.Stdout
		}
		if !err.lost {
			r.Truncated.Stderr = reported.Stderr
		}
	}
	r.Stdout, r.StdoutBase64 = c.text(out)
	r.Stderr, r.StderrBase64 = c.text(err)
	if c.lossy && (out.lost || err.lost) {
		c.note("Output was left out: " + noMemory + ".")
	}
	r.Notes = append(r.Notes, o.Notes...)
	r.TimingsMS.Start, r.TimingsMS.Run = execution.Milliseconds(o.Start), execution.Milliseconds(o.Run)
}

// text is a stream as a result has it. The memory for the bytes as they came is
// given back.
func (c *collector) text(s *captured) (text string, exact *string) {
	text, exact = execution.Text(s.data)
	taken := textCost * len(s.data)
	if s.binary {
		taken = binaryCost * len(s.data)
	}
	held := len(text)
	if exact != nil {
		held += len(*exact)
	}
	s.data = nil
	c.memory.Give(int64(max(taken-held, 0)))
	return text, exact
}
