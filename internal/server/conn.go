package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lingerIdle bounds each wait for more, lingerTime all of them together.
	lingerIdle  = time.Second
	lingerTime  = 30 * time.Second
	lingerBytes = 256 << 20
)

// refusedHead is what net/http reads in place of a head that is refused, so
// that its answer takes its turn among those of the requests before it.
const refusedHead = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// conn is an accepted connection. It gives net/http one request at a time, and
// no byte of a head before that head is complete and checked. While a request
// is being handled it reads ahead, within bounds, so that net/http notices the
// end of a client that has sent further requests, too.
//
// Reads follow each other: net/http waits for its background read before it
// reads on.
type conn struct {
	net.Conn
	conns         *conns
	headerTimeout time.Duration
	writeTimeout  time.Duration
	bodyLimit     int64

	// ahead was received and not passed on; the first cleared bytes of it
	// are (a part of) a checked head.
	ahead   []byte
	cleared int
	frame   framing
	// refused is why the current request is refused. No other follows it.
	refused *refusal

	// active is true from a request's head to the end of its response.
	active   atomic.Bool
	hijacked atomic.Bool
	// cut ends all reading.
	cut atomic.Bool
	// bodyFailed: a read of a body failed, and the client may still read the
	// answer, though net/http takes it for gone.
	bodyFailed atomic.Bool
	// linger makes Close read what the client still sends, for a while:
	// closing with unread data resets the connection, and the reset can
	// overtake the response that says why (RFC 9112, 9.6).
	linger atomic.Bool

	// mu orders the deadlines of reads that several goroutines set.
	mu sync.Mutex
	// limit, once set, is the latest time to which any read may wait.
	limit time.Time
	// interrupted: the deadline was set to end a read at once.
	interrupted bool
	// wake gets a token whenever a read that does not wait for the network
	// should end.
	wake chan struct{}
	// resting: a request was answered, and nothing came of the next.
	resting bool
}

// Read implements net.Conn for net/http.
func (c *conn) Read(p []byte) (int, error) {
	switch {
	case c.hijacked.Load():
		return c.readRaw(p)
	case c.cut.Load():
		return 0, io.EOF
	case c.cleared == 0 && c.refused != nil:
		if c.active.Load() {
			return 0, c.awaitInterrupt()
		}
		return 0, io.EOF
	case c.cleared == 0 && c.frame.done():
		if c.active.Load() {
			return 0, c.awaitEnd()
		}
		if err := c.nextHead(); err != nil {
			return 0, err
		}
	}
	if c.cleared > 0 {
		n := copy(p, c.ahead[:c.cleared])
		c.cleared -= n
		c.drop(n)
		return n, nil
	}
	return c.readBody(p)
}

func (c *conn) readRaw(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.ahead)
	c.drop(n)
	return n, nil
}

// nextHead makes a head the cleared part of ahead.
func (c *conn) nextHead() error {
	scanned, began := 0, false
	for {
		if scanned == 0 && len(c.ahead) >= 2 && string(c.ahead[:2]) == "\r\n" {
			c.drop(2) // RFC 9112, 2.2: an empty line before the request is ignored
		}
		if len(c.ahead) > 0 && !began {
			began = true
			c.begin()
		}
		if string(c.ahead) != "\r" {
			end, r := scanHead(c.ahead, scanned)
			scanned = len(c.ahead)
			if r == nil && (end > maxHead || end == 0 && len(c.ahead) >= maxHead) {
				r = tooLong(c.ahead[:maxHead])
			}
			if r == nil && end > 0 {
				if c.frame, r = parseHead(string(c.ahead[:end])); r == nil {
					c.cleared = end
					return nil
				}
			}
			if r != nil {
				c.refuse(r)
				return nil
			}
		}
		if err := c.fill(); err != nil {
			if began && errors.Is(err, os.ErrDeadlineExceeded) {
				c.refuse(&refusal{http.StatusRequestTimeout, "The request did not arrive in time."})
				return nil
			}
			return err
		}
	}
}

func (c *conn) refuse(r *refusal) {
	c.refused, c.frame = r, framing{}
	c.ahead = append(c.ahead[:0], refusedHead...)
	c.cleared = len(c.ahead)
	c.linger.Store(true)
}

// fill waits for more and adds it to ahead, which has room.
func (c *conn) fill() error {
	if len(c.ahead) == cap(c.ahead) {
		grown := make([]byte, len(c.ahead), max(2<<10, 2*cap(c.ahead)))
		copy(grown, c.ahead)
		c.ahead = grown
	}
	n, err := c.Conn.Read(c.ahead[len(c.ahead):cap(c.ahead)])
	c.ahead = c.ahead[:len(c.ahead)+n]
	if n > 0 {
		return nil
	}
	return err
}

func (c *conn) drop(n int) { c.ahead = c.ahead[:copy(c.ahead, c.ahead[n:])] }

func (c *conn) readBody(p []byte) (int, error) {
	n, err := c.nextBytes(p)
	if c.frame.announced > c.bodyLimit {
		n, err = 0, errTooLarge
	}
	for _, expected := range []error{errTooLarge, errChunk, io.EOF, os.ErrDeadlineExceeded} {
		if errors.Is(err, expected) {
			c.bodyFailed.Store(true)
		}
	}
	return n, err
}

func (c *conn) nextBytes(p []byte) (int, error) {
	if len(c.ahead) > 0 {
		n, err := c.frame.advance(c.ahead[:min(len(p), len(c.ahead))])
		copy(p, c.ahead[:n])
		c.drop(n)
		if n > 0 {
			err = nil // it comes again
		}
		return n, err
	}
	n, err := c.Conn.Read(p)
	m, broken := c.frame.advance(p[:n])
	c.ahead = append(c.ahead, p[m:n]...)
	if broken != nil && m == 0 {
		return 0, broken
	}
	return m, err
}

// awaitEnd reads ahead until the client has gone, or until the read is
// interrupted since the response is complete.
func (c *conn) awaitEnd() error {
	for {
		if len(c.ahead) >= maxHead {
			return c.awaitInterrupt()
		}
		err := c.fill()
		if errors.Is(err, os.ErrDeadlineExceeded) && c.resume() {
			continue
		}
		if err != nil {
			return err
		}
	}
}

// resume clears a deadline that was meant for the body, and is false if the
// read was interrupted.
func (c *conn) resume() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted {
		return false
	}
	return c.Conn.SetReadDeadline(time.Time{}) == nil
}

func (c *conn) awaitInterrupt() error {
	for {
		c.mu.Lock()
		interrupted := c.interrupted
		c.mu.Unlock()
		switch {
		case interrupted:
			return os.ErrDeadlineExceeded
		case c.cut.Load():
			return net.ErrClosed
		}
		<-c.wake
	}
}

func (c *conn) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.writeTimeout))
	return c.Conn.Write(p)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.interrupted = !t.IsZero() && !t.After(time.Now()); c.interrupted {
		c.wakeUp()
	}
	if !c.limit.IsZero() && (t.IsZero() || t.After(c.limit)) {
		t = c.limit
	}
	return c.Conn.SetReadDeadline(t)
}

// begin: a head has begun, and has its time from now.
func (c *conn) begin() {
	c.mu.Lock()
	c.resting = false
	c.mu.Unlock()
	_ = c.SetReadDeadline(time.Now().Add(c.headerTimeout))
}

// drain makes reads end by deadline, and at once where nothing came since the
// last response.
func (c *conn) drain(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = deadline
	if c.resting {
		deadline = time.Now()
	}
	_ = c.Conn.SetReadDeadline(deadline)
}

// idle: the response is complete.
func (c *conn) idle() {
	c.active.Store(false)
	if !c.frame.done() {
		c.cut.Store(true) // the next head cannot be found
	}
	c.mu.Lock()
	c.resting = len(c.ahead) == 0
	c.mu.Unlock()
}

// CloseWrite is for net/http, which does it before it closes early.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.cut.Store(true)
	c.wakeUp()
	if c.linger.Swap(false) {
		_ = c.CloseWrite()
		c.discard()
	}
	return c.Conn.Close()
}

// discard reads what the client still sends for as long as it keeps sending,
// within bounds.
func (c *conn) discard() {
	end := time.Now().Add(lingerTime)
	piece := make([]byte, 32<<10)
	for left := lingerBytes; left > 0; {
		until := time.Now().Add(lingerIdle)
		if until.After(end) {
			until = end
		}
		_ = c.SetReadDeadline(until)
		n, err := c.Conn.Read(piece)
		if err != nil {
			return
		}
		left -= n
	}
}
