package runner

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/language"
	"github.com/preheat-dev/preheat/internal/lease"
)

// session is the use of a sandbox for several runs. It ends when its lease does,
// when it is told to, and with the sandbox.
type session struct {
	runner *Runner
	id     string
	lang   language.Language
	root   *os.Root
	cells  *cells

	mu    sync.Mutex
	lease lease.Lease
	// changed gets something when a use has ended.
	changed chan struct{}
	// reason is why it is over, once over is closed.
	reason execution.SessionEnd
	over   chan struct{}
	// watched is closed when nothing watches the lease any more.
	watched chan struct{}
}

// openSession makes the sandbox the session that op opens.
func (r *Runner) openSession(op wire.Operation, run wire.Run) (*session, error) {
	lang, ok := r.language(run.Language)
	if !ok || len(lang.Session) == 0 {
		return nil, &invalidError{field: "language", err: fmt.Errorf("%q keeps no sessions", run.Language)}
	}
	if op.Session == "" || op.Idle <= 0 || op.Lifetime <= 0 {
		return nil, &invalidError{err: errors.New("a session needs an id, an idle time and a lifetime")}
	}
	root, err := os.OpenRoot(r.config.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("opening the session's folder: %w", err)
	}
	if err := writeFiles(root, run.Files, os.O_EXCL); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	now := time.Now()
	s := &session{
		runner: r, id: op.Session, lang: lang, root: root,
		lease:   lease.Lease{Expires: now.Add(op.Lifetime), Idle: op.Idle, LastUse: now},
		changed: make(chan struct{}, 1), over: make(chan struct{}), watched: make(chan struct{}),
	}
	if s.cells, err = newCells(r, lang); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	go func() {
		defer close(s.watched)
		s.watch()
	}()
	return s, nil
}

// SessionEnd is why the sandbox's session is over, "" if there was none.
func (r *Runner) SessionEnd() execution.SessionEnd {
	s := r.session.Load()
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Shutdown ends the sandbox's session, if there is one.
func (r *Runner) Shutdown() {
	if s := r.session.Load(); s != nil {
		s.end(execution.SessionShutdown)
	}
}

// watch ends the session at the end of its lease.
func (s *session) watch() {
	for {
		s.mu.Lock()
		at, why := s.lease.Next()
		s.mu.Unlock()
		timer := time.NewTimer(time.Until(at))
		select {
		case <-s.over:
		case <-s.changed:
		case <-timer.C:
			s.endIfDue(why)
		}
		timer.Stop()
		select {
		case <-s.over:
			return
		default:
		}
	}
}

// endIfDue ends the session unless somebody has begun to use it.
func (s *session) endIfDue(why execution.SessionEnd) {
	s.mu.Lock()
	at, now := s.lease.Next()
	due := now == why && !time.Now().Before(at)
	s.mu.Unlock()
	if due {
		s.end(why)
	}
}

// end ends the session, every process and all connections.
func (s *session) end(why execution.SessionEnd) {
	s.halt(why)
	s.runner.admission.closeListener()
}

// halt ends the session and every process, once.
func (s *session) halt(why execution.SessionEnd) {
	s.mu.Lock()
	first := s.reason == ""
	if first {
		s.reason = why
	}
	s.mu.Unlock()
	if !first {
		<-s.over
		return
	}
	s.cells.end()
	close(s.over)
}

// wait returns when the session is over and all that it had is given back.
func (s *session) wait() {
	<-s.over
	<-s.watched
	_ = s.root.Close()
}

// use begins a use of the session. The error is a *wire.Failure if it is over.
func (s *session) use() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != "" {
		return nil, &wire.Failure{Code: wire.FailureSession, Detail: string(s.reason)}
	}
	s.lease.Begin()
	return func() {
		s.mu.Lock()
		s.lease.End(time.Now())
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}, nil
}

// keep makes the sandbox the session that conn opens, and says so.
func (r *Runner) keep(conn net.Conn, server *wire.Server, op wire.Operation, run wire.Run) error {
	s, err := r.openSession(op, run)
	if err != nil {
		// The sandbox has had its one use.
		defer r.admission.closeListener()
		return errors.Join(err, server.Fail(failureOf(err)))
	}
	r.session.Store(s)
	_ = conn.SetWriteDeadline(time.Now().Add(stall))
	if err := server.Reply(wire.Reply{}); err != nil {
		s.end(execution.SessionSandboxLost) // nobody knows of it
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return ErrNoRun
}

// serveOver serves the operations that share the connection which opened the
// session, until that ends or the session does.
func (s *session) serveOver(conn net.Conn) error {
	config := yamux.DefaultConfig()
	config.LogOutput, config.EnableKeepAlive, config.StreamOpenTimeout = io.Discard, false, 0
	mux, err := yamux.Server(conn, config)
	if err != nil {
		s.end(execution.SessionSandboxLost)
		return fmt.Errorf("sharing the session's connection: %w", err)
	}
	s.runner.admission.open(mux)
	select {
	case <-s.over: // before the listener was there to be closed
		_ = mux.Close()
	default:
	}
	_ = listen(mux, func(conn net.Conn) error { return s.runner.serve(conn, timeouts{}) })
	s.end(execution.SessionShutdown) // the other end is gone, if it was not over
	s.wait()
	return nil
}

// serve carries out the operation that a connection brings.
func (s *session) serve(stream net.Conn, limits timeouts) error {
	conn := &steady{Conn: stream}
	server := wire.NewServer(conn)
	op, err := s.authorize(conn, server, limits)
	if err == nil {
		err = s.operate(conn, server, op)
	}
	var failure *wire.Failure
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failure):
		slog.Error("An operation on the session failed", "operation", op.Kind, "error", err)
		failure = failureOf(err)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(refusalTimeout))
	if err := server.Fail(failure); err != nil {
		return err
	}
	drain(stream)
	return nil
}

// authorize reads what conn is for, and checks that its other end may use the
// session.
func (s *session) authorize(conn *steady, server *wire.Server, limits timeouts) (wire.Operation, error) {
	_ = conn.SetReadDeadline(deadline(limits.hello))
	if err := server.Ready(); err != nil {
		return wire.Operation{}, fmt.Errorf("reporting ready: %w", err)
	}
	hello, err := server.Hello()
	if err != nil {
		return wire.Operation{}, err
	}
	if err := s.runner.admission.authorize(hello); err != nil {
		return wire.Operation{}, err
	}
	if hello.Role != wire.RoleSession {
		return wire.Operation{}, errUsed
	}
	op, err := server.ReadOperation()
	if err != nil {
		return wire.Operation{}, err
	}
	if subtle.ConstantTimeCompare([]byte(op.Session), []byte(s.id)) != 1 {
		return wire.Operation{}, errNoSession
	}
	_ = conn.SetReadDeadline(time.Time{})
	return op, nil
}

func (s *session) operate(conn *steady, server *wire.Server, op wire.Operation) error {
	if op.Kind == wire.OperationStatus {
		return server.Reply(s.status())
	}
	done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	switch op.Kind {
	case wire.OperationRun:
		return s.run(conn, server, op)
	case wire.OperationInterrupt:
		if !s.cells.interrupt() {
			return &wire.Failure{Code: wire.FailureNothingRuns, Detail: "nothing runs in the session"}
		}
		return server.Reply(wire.Reply{})
	case wire.OperationEnd:
		// Connections may end with the listener: the reply comes before.
		defer s.runner.admission.closeListener()
		s.halt(execution.SessionClosed)
		return server.Reply(wire.Reply{})
	case wire.OperationOpen:
		return errUsed
	}
	return s.operateOnFiles(conn, server, op)
}

func (s *session) status() wire.Reply {
	running, sequence := s.cells.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Reply{Running: running, Sequence: sequence, IdleLeft: s.lease.Left(time.Now())}
}

// stall is how long a connection may take nothing, or send nothing of what is
// on its way, before it is given up.
const stall = 30 * time.Second

// steady is a connection that is given up when it stalls.
type steady struct {
	net.Conn
	// receiving says that something is on its way to here.
	receiving bool
}

// Read implements io.Reader.
func (c *steady) Read(p []byte) (int, error) {
	if c.receiving {
		if err := c.SetReadDeadline(time.Now().Add(stall)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(p)
}

// Write implements io.Writer.
func (c *steady) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// drain reads what the other end still sends, for a moment: it gets a failure
// that came before the end of its content only while there is a connection.
func drain(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(refusalTimeout))
	var p [4 << 10]byte
	for {
		if _, err := conn.Read(p[:]); err != nil {
			return
		}
	}
}
