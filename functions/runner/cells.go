package runner

import (
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/language"
)

// sessionEntry is the entry of the environment by which a harness learns that it
// serves the cells of a session.
const sessionEntry = "_PREHEAT_SESSION"

// cells runs the programs of a session, one after the other, each as a cell of
// one interpreter. An interpreter that has ended is replaced by a fresh one.
type cells struct {
	runner *Runner
	lang   language.Language
	// inputs is the folder of the cells' standard inputs.
	inputs string

	mu       sync.Mutex
	sequence int64
	running  *cell
	closed   bool

	// The rest belongs to the cell that runs.

	in *interpreter // nil if there is none
	// fresh says that in has run no cell.
	fresh  bool
	output *cellOutput
	// starting is closed when a fresh interpreter is there, or cannot be had.
	starting chan struct{}
}

// cell is one run.
type cell struct {
	execution string
	sequence  int64
	// interrupted is closed when it is to be interrupted.
	interrupted chan struct{}
	interrupt   func()
	// over is closed when it is over.
	over chan struct{}
}

// newCells makes the warm interpreter of a language serve cells, or starts one.
func newCells(r *Runner, lang language.Language) (*cells, error) {
	inputs, err := os.MkdirTemp("", ".preheat-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for input: %w", err)
	}
	c := &cells{runner: r, lang: lang, inputs: inputs}
	warm := r.warm[lang.Name]
	r.killIdleInterpreters(warm)
	delete(r.warm, lang.Name)
	if warm == nil {
		return c, c.start()
	}
	return c, c.handOver(warm)
}

// start starts an interpreter that serves cells.
func (c *cells) start() error {
	c.runner.pipes.forget()
	if len(c.lang.Warm) > 0 {
		in, err := c.runner.startWarm(c.lang)
		if err != nil {
			return err
		}
		return c.handOver(in)
	}
	config := &c.runner.config
	in, err := start(c.runner.procs, c.runner.pipes, c.lang, c.lang.Session, environ(c.environment()), config.WorkDir, true)
	if err != nil {
		return err
	}
	c.use(in)
	return nil
}

// handOver has a warm interpreter serve cells.
func (c *cells) handOver(warm *interpreter) error {
	if err := warm.handOver(nil, c.environment()); err != nil {
		warm.close()
		return err
	}
	c.use(warm)
	return nil
}

func (c *cells) environment() map[string]string {
	env := maps.Clone(c.runner.config.Env)
	env[sessionEntry] = "1"
	return env
}

// use has in serve the cells to come.
func (c *cells) use(in *interpreter) {
	_ = in.stdin.Close() // each cell has its own
	c.in, c.fresh = in, true
	c.output = followCells(in)
}

// state is what runs, and how many cells have begun.
func (c *cells) state() (execution string, sequence int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		execution = c.running.execution
	}
	return execution, c.sequence
}

// interrupt interrupts the cell that runs, and reports whether there is one.
func (c *cells) interrupt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return false
	}
	c.running.interrupt()
	return true
}

// begin makes the next cell. The error is a *wire.Failure while another one runs.
func (c *cells) begin(execution string) (*cell, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, &wire.Failure{Code: wire.FailureSession}
	case c.running != nil:
		return nil, &wire.Failure{Code: wire.FailureBusy, Detail: c.running.execution}
	}
	c.sequence++
	interrupted := make(chan struct{})
	c.running = &cell{
		execution: execution, sequence: c.sequence, over: make(chan struct{}),
		interrupted: interrupted, interrupt: sync.OnceFunc(func() { close(interrupted) }),
	}
	return c.running, nil
}

// finish ends the cell that runs.
func (c *cells) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.running.over)
	c.running = nil
}

// end kills every process, waits for the cell that runs and lets none begin.
func (c *cells) end() {
	c.mu.Lock()
	c.closed = true
	running := c.running
	c.mu.Unlock()
	c.runner.procs.KillAll()
	if running != nil {
		<-running.over
	}
	c.awaitStart()
	if c.in != nil {
		c.runner.procs.KillAll() // it may have been started after the first time
		c.lose(<-c.in.end)
	}
}

func (c *cells) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// interpreter makes sure that there is one for the cell that runs, and reports
// whether it is fresh.
func (c *cells) interpreter() (fresh bool, err error) {
	c.awaitStart()
	if c.in != nil {
		select {
		case end := <-c.in.end:
			c.lose(end) // it ended after its last cell
		default:
		}
	}
	if c.in == nil {
		if err := c.start(); err != nil {
			return false, fmt.Errorf("starting a fresh interpreter: %w", err)
		}
	}
	fresh, c.fresh = c.fresh, false
	return fresh, nil
}

// lose gives back an interpreter that has ended, with all processes.
func (c *cells) lose(exit) {
	c.runner.procs.KillAll()
	c.output.stop()
	c.in.close()
	c.in = nil
}

// renew starts an interpreter for the next cell, which need not wait for it then.
func (c *cells) renew() {
	if c.isClosed() {
		return
	}
	c.starting = make(chan struct{})
	go func(started chan<- struct{}) { // awaitStart waits for it
		defer close(started)
		_ = c.start() // the next cell tries again, and reports
	}(c.starting)
}

func (c *cells) awaitStart() {
	if c.starting != nil {
		<-c.starting
		c.starting = nil
	}
}

// awaitTaken waits until the interpreter has read the cell that is being handed
// over, or for as long as enough allows: an interrupt that comes before is not
// that cell's.
func (in *interpreter) awaitTaken(handed <-chan struct{}, enough <-chan struct{}) {
	select {
	case <-handed:
	case <-enough:
		return
	}
	for in.unread() > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-enough:
			return
		}
	}
}

// unread is how many bytes of what it was handed the interpreter has not read.
// What is in a pipe can be asked at both of its ends, by FIONREAD, which Linux also
// calls TIOCINQ.
func (in *interpreter) unread() (n int) {
	conn, err := in.control.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// interrupt sends SIGINT to the interpreter and what it runs in the foreground,
// as a terminal does.
func (in *interpreter) interrupt() { _ = unix.Kill(-in.pid, unix.SIGINT) }
