package remote

import (
	"context"
	"net"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// Dialer connects to the runner of a session's sandbox.
type Dialer interface {
	// Dial returns a connection for one operation, and the sandbox's token. The
	// error is a *pool.SessionEndedError when the sandbox is gone.
	Dial(ctx context.Context) (conn net.Conn, token string, err error)
}

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
