package server

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// conns knows every connection from its acceptance until its goroutine in
// fasthttp is through with it.
type conns struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
	// changed is closed and replaced whenever a connection has gone.
	changed chan struct{}
	// deadline, once set, is the latest time to which any read may wait.
	deadline atomic.Pointer[time.Time]
}

func newConns() *conns {
	return &conns{open: map[net.Conn]struct{}{}, changed: make(chan struct{})}
}

func (cs *conns) listener(ln net.Listener) net.Listener { return &listener{ln, cs} }

type listener struct {
	net.Listener
	conns *conns
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, conns: l.conns}, nil
}

// state is fasthttp's hook.
func (cs *conns) state(c net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		cs.mu.Lock()
		cs.open[c] = struct{}{}
		cs.mu.Unlock()
	case fasthttp.StateClosed:
		cs.mu.Lock()
		delete(cs.open, c)
		close(cs.changed)
		cs.changed = make(chan struct{})
		cs.mu.Unlock()
	}
}

func (cs *conns) count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// wait waits until no connection is left, or ctx ends: it is false then.
func (cs *conns) wait(ctx context.Context) bool {
	for {
		cs.mu.Lock()
		left, changed := len(cs.open), cs.changed
		cs.mu.Unlock()
		if left == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// drain makes every read end by deadline, those that begin later included.
// Connections that wait for a request thereby come to their end, also those
// on which none was ever sent, which fasthttp takes for active.
func (cs *conns) drain(deadline time.Time) {
	cs.deadline.Store(&deadline)
	cs.each(func(c net.Conn) { _ = c.SetReadDeadline(deadline) })
}

// closeAll closes without lingering.
func (cs *conns) closeAll() {
	cs.each(func(c net.Conn) {
		if own, ok := c.(*conn); ok {
			c = own.Conn
		}
		_ = c.Close()
	})
}

func (cs *conns) each(f func(net.Conn)) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.open {
		f(c)
	}
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	conns *conns
	// linger makes Close read what the client still sends, for a while:
	// closing with unread data resets the connection, and the reset can
	// overtake the response that says why.
	linger atomic.Bool
}

const (
	lingerTime  = time.Second
	lingerBytes = 256 << 20
)

// SetReadDeadline never fails: fasthttp panics when it does, as it would on a
// connection that closeAll has closed. The read that follows fails instead.
func (c *conn) SetReadDeadline(t time.Time) error {
	if d := c.conns.deadline.Load(); d != nil && (t.IsZero() || t.After(*d)) {
		t = *d
	}
	_ = c.Conn.SetReadDeadline(t)
	return nil
}

// SetWriteDeadline never fails, for the same reason.
func (c *conn) SetWriteDeadline(t time.Time) error {
	_ = c.Conn.SetWriteDeadline(t)
	return nil
}

func (c *conn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.linger.Swap(false) {
		_ = half.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	return c.Conn.Close()
}
