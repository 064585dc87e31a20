package runner

import (
	"fmt"
	"sync"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// cellOutput reads what the interpreter of a session writes, for the cell that
// runs. What is written between two cells belongs to the next one.
type cellOutput struct {
	arrivals *arrivals
	done     <-chan struct{} // closed when all is read
	written  []*source       // stdout and stderr
	buf      []byte          // to read those with

	mu      sync.Mutex
	now     *streams // of the cell that runs, or nil
	results *results
	between [2][]byte
	// missed are the bytes that were written between cells and not kept.
	missed int64
	// ended are the ends of cells that results have brought.
	ended []cellRecord
	// ends yields the end of the cell that runs.
	ends     chan int
	sequence int64
}

// maxBetween bounds what is kept of each stream between two cells, in bytes.
const maxBetween = 64 << 10

// followCells starts to read what in writes.
func followCells(in *interpreter) *cellOutput {
	o := &cellOutput{arrivals: in.arrivals, buf: make([]byte, packet)}
	o.results = &results{cell: func(end cellRecord) { o.ended = append(o.ended, end) }}
	o.written = []*source{
		{fd: in.stdout, take: func(p []byte) { o.output(execution.Stdout, p) }},
		{fd: in.stderr, take: func(p []byte) { o.output(execution.Stderr, p) }},
	}
	sources := append([]*source{{fd: in.results, take: o.result}}, o.written...)
	o.done = o.arrivals.follow(sources, o.idle)
	return o
}

// begin has what is written go to the cell sequence, whose exit code the channel
// yields when it ends.
func (o *cellOutput) begin(server *wire.Server, run wire.Run, sequence int64) (*streams, <-chan int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results.renew(server, run)
	o.now = newStreams(server, run, o.results)
	o.ends, o.sequence = make(chan int, 1), sequence
	for stream, text := range o.between {
		o.now.output(execution.Stream(stream), text)
		o.between[stream] = nil
	}
	o.now.flush()
	if o.missed > 0 {
		o.results.note(fmt.Sprintf("%d bytes that were written between two runs are left out", o.missed))
		o.missed = 0
	}
	return o.now, o.ends
}

// finish ends what the cell gets, and returns what was left out of it, and notes.
func (o *cellOutput) finish() (execution.Truncated, []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.now
	o.now = nil
	s.flush()
	return s.close()
}

// stop reads the rest. Every process is dead by now.
func (o *cellOutput) stop() {
	o.arrivals.stop()
	<-o.done
}

func (o *cellOutput) output(stream execution.Stream, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now != nil {
		o.now.output(stream, p)
		return
	}
	kept := min(len(p), maxBetween-len(o.between[stream]))
	o.between[stream] = append(o.between[stream], p[:kept]...)
	o.missed += int64(len(p) - kept)
}

func (o *cellOutput) result(p []byte) {
	if o.record(p) {
		// The cell has ended: what it wrote is in the pipes, if it was not read.
		for _, s := range o.written {
			for range maxDrained {
				if !s.readWrite(o.buf) {
					break
				}
			}
		}
		o.end()
	}
}

// maxDrained bounds the writes that are read at the end of a cell: processes that
// it has left may write on.
const maxDrained = 1024

// record takes bytes of results, and reports whether they brought a cell's end.
func (o *cellOutput) record(p []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now != nil {
		o.now.result(p)
	} else {
		o.results.write(p, 0)
	}
	return len(o.ended) > 0
}

// end reports the end of the cell that runs, if it is among those that came.
func (o *cellOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.ended {
		if o.now != nil && e.Sequence == o.sequence {
			o.now.flush()
			select {
			case o.ends <- e.ExitCode:
			default: // the program has written another one
			}
		}
	}
	o.ended = o.ended[:0]
}

func (o *cellOutput) idle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now != nil {
		o.now.flush()
	}
}
