package remote

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/hashicorp/yamux"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// Mux is the Dialer of a session whose runner has a single connection: all
// operations share it, and the session ends with it.
type Mux struct {
	session *yamux.Session
	token   string
}

var _ Dialer = (*Mux)(nil)

// Multiplex makes a Mux of the connection over which Open has opened a session.
// Nothing else may use it then. token is the sandbox's, if it has one.
func Multiplex(conn net.Conn, token string) (*Mux, error) {
	config := yamux.DefaultConfig()
	// The other end is on this machine: it is there, or the connection ends. A
	// sandbox that gets no processor time for a while is no reason to end it.
	config.LogOutput, config.EnableKeepAlive, config.StreamOpenTimeout = io.Discard, false, 0
	session, err := yamux.Client(conn, config)
	if err != nil {
		return nil, fmt.Errorf("sharing the session's connection: %w", err)
	}
	return &Mux{session, token}, nil
}

// Dial implements Dialer.
func (m *Mux) Dial(ctx context.Context) (net.Conn, string, error) {
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	conn, err := m.session.Open()
	if m.session.IsClosed() {
		return nil, "", &pool.SessionEndedError{Reason: execution.SessionSandboxLost}
	}
	return conn, m.token, err
}

// Done is closed when the connection has ended.
func (m *Mux) Done() <-chan struct{} { return m.session.CloseChan() }

// Close ends the connection and so the session.
func (m *Mux) Close() error { return m.session.Close() }
