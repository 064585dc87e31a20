package runner

import (
	"sync"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/capture"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// streams passes on what a program writes to its pipes, in the order in which
// it was written, until finish.
type streams struct {
	arrivals *arrivals
	server   *wire.Server
	limits   wire.Limits
	// exceeded is closed when a stream passes the total output limit.
	exceeded chan struct{}
	once     sync.Once
	done     <-chan struct{} // closed when all is read
	fed      sync.WaitGroup

	// The rest belongs to the reading thread until done.

	captures [2]*capture.Capture
	// piece is what was read of the stream current and not passed on yet:
	// short writes go on together.
	piece   []byte
	current execution.Stream
	results *results
}

// pieceLen is the most that a piece grows to, in bytes.
const pieceLen = 64 << 10

// newStreams returns the streams of a run, before anything is written.
func newStreams(server *wire.Server, run wire.Run, results *results) *streams {
	s := &streams{server: server, limits: run.Limits, exceeded: make(chan struct{}), results: results}
	for stream := range s.captures {
		s.captures[stream] = capture.New(run.Limits.Output, func(data []byte, skipped int64) {
			// The exit report fails for the same reason as this.
			_ = server.Output(execution.Stream(stream), data, skipped)
		})
	}
	return s
}

// watch starts to feed the program and to read its output.
func watch(server *wire.Server, in *interpreter, run wire.Run) *streams {
	s := newStreams(server, run, newResults(server, run))
	s.arrivals = in.arrivals
	s.fed.Go(func() {
		_, _ = in.stdin.Write(run.Stdin) // a program need not read it
		_ = in.stdin.Close()
	})
	sources := []*source{
		{fd: in.stdout, take: func(p []byte) { s.output(execution.Stdout, p) }},
		{fd: in.stderr, take: func(p []byte) { s.output(execution.Stderr, p) }},
		{fd: in.results, take: s.result},
	}
	s.done = s.arrivals.follow(sources, s.flush)
	return s
}

// finish waits for what is still in the pipes. Every process is dead by now.
func (s *streams) finish(in *interpreter) (execution.Truncated, []string) {
	_ = in.stdin.Close()
	s.arrivals.stop()
	<-s.done
	s.fed.Wait()
	return s.close()
}

// close returns what was left out, and notes. All is read and passed on.
func (s *streams) close() (execution.Truncated, []string) {
	return execution.Truncated{Stdout: s.captures[execution.Stdout].Close(), Stderr: s.captures[execution.Stderr].Close()}, s.results.close()
}

// output takes bytes of one stream. It goes on beyond the limits, so that the
// program never blocks on a full pipe.
func (s *streams) output(stream execution.Stream, p []byte) {
	if stream != s.current || len(s.piece)+len(p) > pieceLen {
		s.flush()
	}
	s.current = stream
	s.piece = append(s.piece, p...)
}

// result takes bytes of rich results, which come after what is written so far.
func (s *streams) result(p []byte) {
	s.flush()
	s.results.write(p, s.captures[execution.Stdout].Total())
}

// flush passes the piece on.
func (s *streams) flush() {
	if len(s.piece) == 0 {
		return
	}
	c := s.captures[s.current]
	_, _ = c.Write(s.piece)
	s.piece = s.piece[:0]
	if c.Total() > s.limits.TotalOutput {
		s.once.Do(func() { close(s.exceeded) })
	}
}
