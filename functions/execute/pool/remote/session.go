package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// Dialer connects to the runner of a session's sandbox.
type Dialer interface {
	// Dial returns a connection for one operation, and the sandbox's token. The
	// error is a *pool.SessionEndedError when the sandbox is gone.
	Dial(ctx context.Context) (conn net.Conn, token string, err error)
}

// Open opens the session want in the sandbox at the other end of c, and returns
// when its runner has accepted it. It wins the sandbox's one use, as a run does.
// The error is a *pool.InvalidError when the runner refuses the session for what
// is in it, pool.ErrNoSessions when it is too old to keep one, and any other
// *wire.Failure as it is.
func Open(ctx context.Context, c *wire.Client, want pool.SessionClaim) error {
	files := wire.Run{Language: want.Language, Code: []byte{}}
	for _, f := range want.Files {
		files.Files = append(files.Files, wire.File(f))
	}
	err := c.Open(ctx, wire.Operation{Session: want.Session, Idle: want.Idle, Lifetime: time.Until(want.Deadline)}, files)
	return translate(err)
}

// translate is what an error of the runner's means to a pool's callers.
func translate(err error) error {
	var failure *wire.Failure
	switch {
	case errors.Is(err, wire.ErrNoSessions):
		return fmt.Errorf("%w: %w", pool.ErrNoSessions, err)
	case !errors.As(err, &failure):
		return err
	}
	switch failure.Code {
	case wire.FailureInvalid:
		return &pool.InvalidError{Field: failure.Field, Detail: failure.Detail}
	case wire.FailureSession:
		return &pool.SessionEndedError{Reason: execution.SessionEnd(failure.Detail)}
	case wire.FailureBusy:
		return &pool.BusyError{Running: failure.Detail}
	case wire.FailureNothingRuns:
		return pool.ErrNothingRuns
	case wire.FailureNoFile:
		return pool.ErrNoFile
	}
	return err
}

// Session is a pool.Session whose operations each have a connection of their own
// to the sandbox's runner.
type Session struct {
	info pool.SessionInfo
	d    Dialer
}

var _ pool.Session = (*Session)(nil)

// NewSession returns the session that info describes, which has been opened.
func NewSession(info pool.SessionInfo, d Dialer) *Session { return &Session{info: info, d: d} }

// Info implements pool.Session.
func (s *Session) Info() pool.SessionInfo { return s.info }

// stall is how long an operation may make no progress before it is given up.
const stall = 30 * time.Second

// steady is a connection that is given up when it stalls. Its deadlines are none
// but the earlier one once limited.
type steady struct {
	net.Conn

	mu      sync.Mutex
	limited bool
}

// SetDeadline implements net.Conn: it is the last word.
func (c *steady) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limited = true
	return c.Conn.SetDeadline(t)
}

func (c *steady) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.limited {
		_ = c.Conn.SetDeadline(time.Now().Add(stall))
	}
}

// Read implements io.Reader.
func (c *steady) Read(p []byte) (int, error) {
	c.progress()
	return c.Conn.Read(p)
}

// Write implements io.Writer.
func (c *steady) Write(p []byte) (int, error) {
	c.progress()
	return c.Conn.Write(p)
}

// dial connects to the runner for one operation of this kind.
func (s *Session) dial(ctx context.Context, kind wire.OperationKind) (net.Conn, *wire.Client, wire.Operation, error) {
	conn, token, err := s.d.Dial(ctx)
	if err != nil {
		return nil, nil, wire.Operation{}, fmt.Errorf("connecting to sandbox %s: %w", s.info.Sandbox, err)
	}
	if kind != wire.OperationRun { // a program may be silent for as long as it may run
		conn = &steady{Conn: conn}
	}
	return conn, wire.NewClient(conn, token), wire.Operation{Session: s.info.ID, Kind: kind}, nil
}

// ask carries out an operation without content.
func (s *Session) ask(ctx context.Context, kind wire.OperationKind, change func(*wire.Operation), each func(wire.SessionFile)) (wire.Reply, error) {
	conn, client, op, err := s.dial(ctx, kind)
	if err != nil {
		return wire.Reply{}, err
	}
	defer func() { _ = conn.Close() }()
	if change != nil {
		change(&op)
	}
	reply, err := client.Ask(ctx, op, each)
	return reply, s.explain(err)
}

// explain is the error of an operation. One of a connection that has ended for
// good wraps pool.ErrSandboxLost.
func (s *Session) explain(err error) error {
	if err == nil {
		return nil
	}
	own := translate(err)
	if m, ok := s.d.(*Mux); ok && own == err {
		select {
		case <-m.Done():
			return fmt.Errorf("%w: %w", pool.ErrSandboxLost, err)
		default:
		}
	}
	return own
}

// Status implements pool.Session.
func (s *Session) Status(ctx context.Context) (pool.SessionStatus, error) {
	r, err := s.ask(ctx, wire.OperationStatus, nil, nil)
	return pool.SessionStatus{Running: r.Running, Sequence: r.Sequence, IdleLeft: r.IdleLeft}, err
}

// Run implements pool.Session.
func (s *Session) Run(ctx context.Context, id string, run pool.Run, sink pool.Sink) (pool.SessionOutcome, error) {
	conn, client, op, err := s.dial(ctx, wire.OperationRun)
	if err != nil {
		return pool.SessionOutcome{}, err
	}
	defer func() { _ = conn.Close() }()
	op.Execution = id
	out, err := client.RunIn(ctx, op, request(run), sink)
	if err != nil {
		return pool.SessionOutcome{}, s.explain(err)
	}
	return pool.SessionOutcome{Outcome: pool.Outcome(out.Outcome), State: out.State, Sequence: out.Sequence}, nil
}

// Interrupt implements pool.Session.
func (s *Session) Interrupt(ctx context.Context) error {
	_, err := s.ask(ctx, wire.OperationInterrupt, nil, nil)
	return err
}

// End ends the session from inside.
func (s *Session) End(ctx context.Context) error {
	_, err := s.ask(ctx, wire.OperationEnd, nil, nil)
	return err
}

// Files implements pool.Session.
func (s *Session) Files(ctx context.Context, max int) ([]pool.SessionFile, bool, error) {
	var files []pool.SessionFile
	r, err := s.ask(ctx, wire.OperationList, func(op *wire.Operation) { op.Max = max }, func(f wire.SessionFile) {
		if len(files) < max {
			files = append(files, pool.SessionFile(f))
		}
	})
	return files, r.More, err
}

// Open implements pool.Session.
func (s *Session) Open(ctx context.Context, path string, offset, length int64) (pool.SessionFile, io.ReadCloser, error) {
	conn, client, op, err := s.dial(ctx, wire.OperationRead)
	if err != nil {
		return pool.SessionFile{}, nil, err
	}
	op.Path, op.Offset, op.Length = path, offset, length
	f, r, err := client.Read(ctx, op)
	if err != nil {
		_ = conn.Close()
		return pool.SessionFile{}, nil, s.explain(err)
	}
	return pool.SessionFile(f), download{r, conn}, nil
}

// Archive implements pool.Session.
func (s *Session) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	conn, client, op, err := s.dial(ctx, wire.OperationArchive)
	if err != nil {
		return nil, err
	}
	op.Path = path
	r, err := client.Archive(ctx, op)
	if err != nil {
		_ = conn.Close()
		return nil, s.explain(err)
	}
	return download{r, conn}, nil
}

// download is content that a connection brings.
type download struct {
	io.Reader
	io.Closer
}

// Write implements pool.Session.
func (s *Session) Write(ctx context.Context, path string, content io.Reader) (pool.SessionFile, bool, error) {
	conn, client, op, err := s.dial(ctx, wire.OperationWrite)
	if err != nil {
		return pool.SessionFile{}, false, err
	}
	defer func() { _ = conn.Close() }()
	op.Path = path
	f, created, err := client.Write(ctx, op, content)
	return pool.SessionFile(f), created, s.explain(err)
}

// Remove implements pool.Session.
func (s *Session) Remove(ctx context.Context, path string) error {
	_, err := s.ask(ctx, wire.OperationRemove, func(op *wire.Operation) { op.Path = path }, nil)
	return err
}
