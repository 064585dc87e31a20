package runner

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/artifact"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// interruptGrace is how long a cell that was interrupted may go on.
const interruptGrace = 2 * time.Second

// run carries out the run that conn brings.
func (s *session) run(conn *steady, server *wire.Server, op wire.Operation) error {
	conn.receiving = true
	run, err := server.ReadRun()
	if err != nil {
		return err
	}
	conn.receiving = false
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("waiting for a cancellation: %w", err)
	}
	received := time.Now()
	if run.Language != s.lang.Name {
		return &invalidError{field: "language", err: fmt.Errorf("the session's language is %s", s.lang.Name)}
	}
	cell, err := s.cells.begin(op.Execution)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		// Ends at the latest when the caller closes conn after serve.
		defer cancel()
		server.AwaitEnd()
	}()
	outcome, err := s.execute(ctx, server, cell, run, received)
	s.cells.finish()
	if err != nil {
		return err
	}
	return server.SessionExit(outcome)
}

// execute runs a program as the cell.
func (s *session) execute(ctx context.Context, server *wire.Server, cell *cell, run wire.Run, received time.Time) (wire.SessionOutcome, error) {
	r, c := s.runner, s.cells
	fresh, err := c.interpreter()
	if err != nil {
		return wire.SessionOutcome{}, err
	}
	message, err := s.prepare(cell, run)
	if err != nil {
		return wire.SessionOutcome{}, err
	}
	known, err := artifact.Take(r.config.WorkDir)
	if err != nil {
		return wire.SessionOutcome{}, fmt.Errorf("looking at the working directory: %w", err)
	}
	habitual := habits(s.lang, run.Code)
	dropInput(&run)
	kills := r.memory.oomKills()
	usage := newCellUsage(r.procs, c.in.pid)
	streams, ended := c.output.begin(server, run, cell.sequence)
	if err := server.Started(); err != nil {
		c.output.finish()
		c.fresh = fresh
		return wire.SessionOutcome{}, fmt.Errorf("reporting the start: %w", err)
	}

	started := time.Now()
	timeout := time.NewTimer(run.Limits.Timeout)
	defer timeout.Stop()
	why, end := s.attend(ctx, message, attendance{
		ended: ended, died: c.in.end, exceeded: streams.exceeded, interrupted: cell.interrupted, timeout: timeout.C,
	})
	stopped := time.Now()
	kills = r.memory.oomKills() - kills
	if end.lost || kills > 0 {
		r.reserve.free()
	}
	used := usage.end(r.procs, end.lost)
	if end.lost {
		r.procs.KillAll()
		c.output.stop()
	}
	truncated, notes := c.output.finish()

	out := wire.SessionOutcome{Outcome: concludeCell(why, end, kills), State: stateOf(fresh, end.lost), Sequence: cell.sequence}
	out.Truncated = truncated
	out.Start, out.Run = started.Sub(received), stopped.Sub(started)
	used.OOMKills, used.WallMS = kills, execution.Milliseconds(out.Run)
	out.Usage = used
	out.Notes = append(append(out.Notes, habitual...), notes...)
	out.Notes = append(out.Notes, r.sendArtifacts(server, known, run.Limits)...)
	if end.lost {
		c.in.close()
		c.in = nil
		c.renew()
	}
	return out, nil
}

// stateOf is the state that a run answers with.
func stateOf(fresh, lost bool) execution.SessionState {
	switch {
	case lost:
		return execution.SessionLost
	case fresh:
		return execution.SessionFresh
	}
	return execution.SessionKept
}

// prepare writes the files of a run, and returns the message that hands it over.
func (s *session) prepare(cell *cell, run wire.Run) ([]byte, error) {
	if err := writeFiles(s.root, run.Files, os.O_TRUNC); err != nil {
		return nil, err
	}
	var stdin string
	if len(run.Stdin) > 0 {
		stdin = filepath.Join(s.cells.inputs, strconv.FormatInt(cell.sequence, 10))
		if err := os.WriteFile(stdin, run.Stdin, 0o600); err != nil {
			return nil, &invalidError{field: "stdin", err: err}
		}
	}
	return cellMessage(cell.sequence, stdin, run), nil
}

// cellMessage is what a harness reads of a cell: its length in four bytes, big
// endian; fields that end in NUL: the sequence, the path of its standard input,
// the number of arguments, these, the number of entries of its environment,
// these; and the source.
func cellMessage(sequence int64, stdin string, run wire.Run) []byte {
	m := make([]byte, 4, 4<<10+len(run.Code))
	field := func(s string) { m = append(append(m, s...), 0) }
	field(strconv.FormatInt(sequence, 10))
	field(stdin)
	field(strconv.Itoa(len(run.Args)))
	for _, a := range run.Args {
		field(a)
	}
	field(strconv.Itoa(len(run.Env)))
	for _, name := range slices.Sorted(maps.Keys(run.Env)) {
		field(name + "=" + run.Env[name])
	}
	m = append(m, run.Code...)
	binary.BigEndian.PutUint32(m, uint32(len(m)-4))
	return m
}

// attendance is what the end of a cell can come from.
type attendance struct {
	ended                 <-chan int
	died                  <-chan exit
	exceeded, interrupted <-chan struct{}
	timeout               <-chan time.Time
}

// cellEnd is how a cell ended: with an exit code, or with its interpreter.
type cellEnd struct {
	code   int
	lost   bool
	status syscall.WaitStatus
}

// attend hands the cell over and waits for its end, which it brings about when
// its time is over.
func (s *session) attend(ctx context.Context, message []byte, a attendance) (cause, cellEnd) {
	in := s.cells.in
	handed := make(chan struct{})
	go func() {
		defer close(handed)
		// One that does not take it has ended, or is ended with its time.
		_, _ = in.control.Write(message)
	}()
	defer func() {
		_ = in.control.SetWriteDeadline(time.Unix(1, 0))
		<-handed
		_ = in.control.SetWriteDeadline(time.Time{})
	}()
	var why cause
	select {
	case code := <-a.ended:
		return causeExit, cellEnd{code: code}
	case e := <-a.died:
		if s.cells.isClosed() {
			return causeCancel, cellEnd{lost: true, status: e.status} // by the session's end
		}
		return causeExit, cellEnd{lost: true, status: e.status}
	case <-a.timeout:
		why = causeTimeout
	case <-a.exceeded:
		why = causeOutput
	case <-a.interrupted:
		why = causeCancel
	case <-ctx.Done():
		why = causeCancel
	}
	grace, cancel := context.WithTimeout(context.Background(), interruptGrace)
	defer cancel()
	in.awaitTaken(handed, grace.Done())
	in.interrupt()
	select {
	case code := <-a.ended:
		return why, cellEnd{code: code}
	case e := <-a.died:
		return why, cellEnd{lost: true, status: e.status}
	case <-grace.Done():
	}
	s.runner.procs.KillAll()
	return why, cellEnd{lost: true, status: (<-a.died).status}
}

// interruptedCode is the exit code of a cell that SIGINT ended.
const interruptedCode = 128 + int(unix.SIGINT)

// concludeCell says how a cell ended: why its time was over, its end, and how many
// processes were killed for memory meanwhile.
func concludeCell(why cause, end cellEnd, oomKills int64) wire.Outcome {
	status := end.status
	if !end.lost {
		status = syscall.WaitStatus((end.code & 0xff) << 8)
	}
	o := conclude(causeExit, status, oomKills)
	if !end.lost && why != causeExit && end.code == interruptedCode {
		o.Signal = unix.SignalName(unix.SIGINT)
	}
	switch {
	case o.Status == execution.StatusOutOfMemory && why == causeExit:
	case why == causeTimeout:
		o.Status = execution.StatusTimedOut
	case why == causeOutput:
		o.Status = execution.StatusOutputLimit
	case why == causeCancel && o.Signal != "":
		// What went on to its end in spite of it ended as it says.
		o.Status = execution.StatusCancelled
	}
	return o
}

// writeFiles writes the files of a request below root. flag says what becomes of
// those that are there: os.O_EXCL or os.O_TRUNC.
func writeFiles(root *os.Root, files []wire.File, flag int) error {
	for i, f := range files {
		if dir := filepath.Dir(f.Path); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return &invalidError{err: fmt.Errorf("files[%d].path: %w", i, err)}
			}
		}
		if err := write(root, f.Path, f.Content, flag); err != nil {
			return &invalidError{err: fmt.Errorf("files[%d]: %w", i, err)}
		}
	}
	return nil
}

func write(root *os.Root, path string, content []byte, flag int) error {
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK|flag, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
