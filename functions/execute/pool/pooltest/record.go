package pooltest

import (
	"sync"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// record is a sink that keeps what it is given. A test reads it after the run,
// or what has come until wrote was closed.
type record struct {
	started   int
	early     bool // output came before the start
	out, err  []byte
	artifacts []execution.Artifact

	wrote chan struct{} // closed at the first output
	once  sync.Once
}

var _ pool.Sink = (*record)(nil)

func newRecord() *record { return &record{wrote: make(chan struct{})} }

// Started implements pool.Sink.
func (r *record) Started() { r.started++ }

// Output implements pool.Sink.
func (r *record) Output(stream execution.Stream, data []byte, _ int64) {
	r.early = r.early || r.started == 0
	if stream == execution.Stderr {
		r.err = append(r.err, data...)
	} else {
		r.out = append(r.out, data...)
	}
	r.once.Do(func() { close(r.wrote) })
}

// Result implements pool.Sink.
func (*record) Result(execution.RichResult) {}

// Artifact implements pool.Sink.
func (r *record) Artifact(a execution.Artifact) { r.artifacts = append(r.artifacts, a) }
