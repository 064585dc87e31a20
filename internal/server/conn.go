package server

import (
	"context"
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
	// deadline, once set, is the latest time to which any read may wait. It is
	// written under mu, and read with the conn's own lock held.
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
	// A connection that sets a deadline of its own at this moment either finds
	// this one or is among those that get it now, after its own.
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
	// reading orders the deadlines of reads that several goroutines set.
	reading sync.Mutex
	// linger makes Close read what the client still sends, for a while:
	// closing with unread data resets the connection, and the reset can
	// overtake the response that says why.
	linger atomic.Bool
}

const (
	// lingerIdle bounds each wait for more, lingerTime all of them together.
	lingerIdle  = time.Second
	lingerTime  = 30 * time.Second
	lingerBytes = 256 << 20
)

// SetReadDeadline never fails: fasthttp panics when it does, as it would on a
// connection that closeAll has closed. The read that follows fails instead.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reading.Lock()
	defer c.reading.Unlock()
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
		c.discard()
	}
	return c.Conn.Close()
}

// discard reads what the client still sends for as long as it keeps sending,
// within bounds (RFC 9112, 9.6).
func (c *conn) discard() {
	end := time.Now().Add(lingerTime)
	piece := make([]byte, 32<<10)
	for left := lingerBytes; left > 0; {
		if now := time.Now().Add(lingerIdle); now.Before(end) {
			_ = c.SetReadDeadline(now)
		} else {
			_ = c.SetReadDeadline(end)
		}
		n, err := c.Conn.Read(piece)
		if err != nil {
			return
		}
		left -= n
	}
}
