package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/preheat-dev/preheat/api/execution"
)

// conns are the connections from their acceptance until net/http is through
// with them.
type conns struct {
	config Config

	mu   sync.Mutex
	open map[*conn]struct{}
	// changed is closed and replaced whenever a connection has gone.
	changed chan struct{}
	// deadline, once set, is that of all reads.
	deadline time.Time

	// refusing are the goroutines that answer connections beyond the limit.
	refusing sync.WaitGroup
	places   chan struct{}
}

// maxRefusing bounds how many connections are refused with an answer at once.
const maxRefusing = 64

func newConns(config Config) *conns {
	return &conns{config: config, open: map[*conn]struct{}{}, changed: make(chan struct{}), places: make(chan struct{}, maxRefusing)}
}

// listener accepts as many connections as the configuration allows, and
// answers the others with a problem.
type listener struct {
	net.Listener
	conns *conns
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if own := l.conns.add(c); own != nil {
			return own, nil
		}
		l.conns.refuse(c)
	}
}

func (cs *conns) add(c net.Conn) *conn {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.open) >= cs.config.Connections {
		return nil
	}
	own := &conn{
		Conn: c, conns: cs, headerTimeout: cs.config.HeaderTimeout, writeTimeout: cs.config.WriteTimeout,
		bodyLimit: int64(cs.config.BodyLimit), limit: cs.deadline, wake: make(chan struct{}, 1),
	}
	cs.open[own] = struct{}{}
	return own
}

// refuse answers without reading, except for what its end needs.
func (cs *conns) refuse(c net.Conn) {
	select {
	case cs.places <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	cs.refusing.Go(func() {
		defer func() { <-cs.places }()
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(lingerIdle))
		if _, err := c.Write(busy(uuid.NewString())); err != nil {
			return
		}
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		for piece := make([]byte, 4<<10); ; {
			if _, err := c.Read(piece); err != nil {
				return
			}
		}
	})
}

func busy(id string) []byte {
	p := execution.NewProblem(execution.ProblemNotReady, "The server has as many connections as it may have.")
	p.RequestID, p.RetryAfterSeconds = id, 1
	body, err := json.Marshal(p.WithAPIError())
	if err != nil {
		body = nil // it is made of strings
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n%s: %s\r\nContent-Type: %s\r\nRetry-After: 1\r\nCache-Control: no-store\r\n"+
		"X-Content-Type-Options: nosniff\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		p.Status, http.StatusText(p.Status), HeaderRequestID, id, execution.MediaProblem, len(body), body)
}

// state is net/http's hook.
func (cs *conns) state(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.active.Store(true)
	case http.StateIdle:
		c.idle()
	case http.StateHijacked:
		c.hijacked.Store(true)
		cs.remove(c)
	case http.StateClosed:
		cs.remove(c)
	}
}

func (cs *conns) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c)
	close(cs.changed)
	cs.changed = make(chan struct{})
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

// drain makes every read end by deadline, those that begin later included, and
// so ends the connections that wait for a request.
func (cs *conns) drain(deadline time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.deadline = deadline
	for c := range cs.open {
		c.drain(deadline)
	}
}

// closeAll closes without lingering.
func (cs *conns) closeAll() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.open {
		c.cut.Store(true)
		c.wakeUp()
		_ = c.Conn.Close()
	}
}
