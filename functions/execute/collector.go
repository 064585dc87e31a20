package execute

import (
	"context"
	"errors"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// Sink takes an execution's events while it runs, in order and from one
// goroutine. Its methods must not block for long: the sandbox waits for them.
type Sink interface {
	Start(sandbox string)
	Output(stream execution.Stream, data []byte, skipped int64)
	Result(execution.RichResult)
	Artifact(execution.Artifact)
}

// collector makes the result of an execution. With a sink it passes events on
// and keeps none of them: memory is bounded by the limits either way, also
// when the runner, which shares its sandbox with the program, does not keep to
// them.
type collector struct {
	sink    Sink
	started bool
	// left is how much more the runner may send; abort ends the run when it
	// is used up.
	left   int64
	abort  context.CancelCauseFunc
	began  time.Time
	result execution.Result
	// streams are the kept bytes, counts what passed.
	streams [2][]byte
	counts  [2]execution.StreamTruncation
}

var _ pool.Sink = (*collector)(nil)

func newCollector(sink Sink, left int64, began time.Time) *collector {
	return &collector{sink: sink, left: left, began: began, result: execution.Result{
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
	*spent = milliseconds(at.Sub(c.began))
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

// Output implements pool.Sink.
func (c *collector) Output(stream execution.Stream, data []byte, skipped int64) {
	if !c.takes(len(data)) {
		return
	}
	n := &c.counts[stream]
	n.TotalBytes += skipped + int64(len(data))
	n.CapturedBytes += int64(len(data))
	if n.Truncated = n.Truncated || skipped > 0; !n.Truncated {
		n.HeadBytes = n.CapturedBytes
	}
	if c.sink != nil {
		c.sink.Output(stream, data, skipped)
		return
	}
	c.streams[stream] = append(c.streams[stream], data...)
}

// Result implements pool.Sink.
func (c *collector) Result(r execution.RichResult) {
	if !c.takes(len(r.MIME) + len(r.Data)) {
		return
	}
	if c.sink != nil {
		c.sink.Result(r)
		return
	}
	c.result.Results = append(c.result.Results, r)
}

// Artifact implements pool.Sink.
func (c *collector) Artifact(a execution.Artifact) {
	if !c.takes(len(a.Path) + len(a.MIME) + len(a.Content)) {
		return
	}
	if c.sink != nil {
		c.sink.Artifact(a)
		return
	}
	c.result.Artifacts = append(c.result.Artifacts, a)
}

// finish completes the result. The counts are those of what arrived, which
// hold even when the runner could not report its own.
func (c *collector) finish(o pool.Outcome) {
	r := &c.result
	r.Status, r.ExitCode, r.Usage = o.Status, o.ExitCode, o.Usage
	if o.Signal != "" {
		r.Signal = &o.Signal
	}
	r.Truncated = execution.Truncated{Stdout: c.counts[execution.Stdout], Stderr: c.counts[execution.Stderr]}
	if o.Truncated != (execution.Truncated{}) {
		r.Truncated = o.Truncated
	}
	r.Stdout, r.StdoutBase64 = execution.Text(c.streams[execution.Stdout])
	r.Stderr, r.StderrBase64 = execution.Text(c.streams[execution.Stderr])
	r.Notes = append(r.Notes, o.Notes...)
	r.TimingsMS.Start, r.TimingsMS.Run = milliseconds(o.Start), milliseconds(o.Run)
}
