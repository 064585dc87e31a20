package remote

import (
	"context"
	"io"
	"net"

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
// when its runner has accepted it. It wins the sandbox's one use, as a run does;
// the error is that of Run.
func Open(ctx context.Context, c *wire.Client, want pool.SessionClaim) error {
	return pool.ErrNoSessions
}

// Mux is the Dialer of a session whose runner has a single connection: all
// operations share it, and the session ends with it.
type Mux struct{}

// Multiplex makes a Mux of the connection over which Open has opened a session.
// Nothing else may use it then. token is the sandbox's, if it has one.
func Multiplex(conn net.Conn, token string) (*Mux, error) { return nil, pool.ErrNoSessions }

// Dial implements Dialer.
func (m *Mux) Dial(ctx context.Context) (net.Conn, string, error) {
	return nil, "", pool.ErrNoSessions
}

// Done is closed when the connection has ended.
func (m *Mux) Done() <-chan struct{} { return nil }

// Close ends the connection and so the session.
func (m *Mux) Close() error { return nil }

// Session is a pool.Session whose operations each have a connection of their own
// to the sandbox's runner.
type Session struct {
	info pool.SessionInfo
	d    Dialer
}

// NewSession returns the session that info describes, which has been opened.
func NewSession(info pool.SessionInfo, d Dialer) *Session { return &Session{info: info, d: d} }

// Info implements pool.Session.
func (s *Session) Info() pool.SessionInfo { return s.info }

var _ pool.Session = (*Session)(nil)

// Status implements pool.Session.
func (s *Session) Status(ctx context.Context) (pool.SessionStatus, error) {
	return pool.SessionStatus{}, pool.ErrNoSessions
}

// Run implements pool.Session.
func (s *Session) Run(ctx context.Context, id string, run pool.Run, sink pool.Sink) (pool.SessionOutcome, error) {
	return pool.SessionOutcome{}, pool.ErrNoSessions
}

// Interrupt implements pool.Session.
func (s *Session) Interrupt(ctx context.Context) error { return pool.ErrNoSessions }

// End ends the session from inside.
func (s *Session) End(ctx context.Context) error { return pool.ErrNoSessions }

// Files implements pool.Session.
func (s *Session) Files(ctx context.Context, max int) ([]pool.SessionFile, bool, error) {
	return nil, false, pool.ErrNoSessions
}

// Open implements pool.Session.
func (s *Session) Open(ctx context.Context, path string, offset, length int64) (pool.SessionFile, io.ReadCloser, error) {
	return pool.SessionFile{}, nil, pool.ErrNoSessions
}

// Archive implements pool.Session.
func (s *Session) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	return nil, pool.ErrNoSessions
}

// Write implements pool.Session.
func (s *Session) Write(ctx context.Context, path string, content io.Reader) (pool.SessionFile, bool, error) {
	return pool.SessionFile{}, false, pool.ErrNoSessions
}

// Remove implements pool.Session.
func (s *Session) Remove(ctx context.Context, path string) error { return pool.ErrNoSessions }
