package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// peers tells within moments that the other end of a connection has closed or
// reset it. fasthttp itself finds out only at its next read or write, which
// lies after the end of the handler.
//
// All connections share one epoll instance, apart from the runtime's, that
// asks for hang-ups and errors only and so never consumes data: keep-alive
// and pipelining are not affected. A client that shuts down its sending side
// counts as gone, as it does for net/http.
//
// Reused file descriptors are no danger. The number of a descriptor is used
// only inside RawConn.Control, while the connection holds it open, and the
// kernel drops the registration of a closed one. An event names its watch by
// a token that is never used twice, so that one which was already under way
// when its watch ended finds nothing.
type peers struct {
	epoll *os.File
	raw   syscall.RawConn

	mu     sync.Mutex
	last   uint64
	gone   map[uint64]func()
	closed bool
}

func newPeers() (*peers, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	// A non-blocking epoll descriptor can itself wait in the runtime's
	// poller: the loop takes no thread, and Close wakes it.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make epoll non-blocking: %w", err)
	}
	f := os.NewFile(uintptr(fd), "epoll")
	raw, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &peers{epoll: f, raw: raw, gone: map[uint64]func(){}}, nil
}

// run calls watches whose peers have gone, until close is called. An error says
// that it can do so no longer.
func (p *peers) run() error {
	events := make([]unix.EpollEvent, 64)
	for {
		var n int
		var failed error
		err := p.raw.Read(func(fd uintptr) bool {
			n, failed = unix.EpollWait(int(fd), events, 0)
			if errors.Is(failed, unix.EINTR) {
				n, failed = 0, nil
				return true
			}
			return n > 0 || failed != nil
		})
		if errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err = errors.Join(err, failed); err != nil {
			return fmt.Errorf("wait for closed connections: %w", err)
		}
		for _, e := range events[:n] {
			if gone := p.take(token(e)); gone != nil {
				gone()
			}
		}
	}
}

func (p *peers) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.epoll.Close()
}

// watch calls gone, once, from another goroutine, when the peer of c has
// closed its end. The returned function ends the watch; gone may still be
// under way when it returns. It does nothing for a connection that has no
// file descriptor.
func (p *peers) watch(c net.Conn, gone func()) (stop func()) {
	raw := rawConn(c)
	if raw == nil {
		return func() {}
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return func() {}
	}
	p.last++
	id := p.last
	p.gone[id] = gone
	p.mu.Unlock()

	e := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(uint32(id)), Pad: int32(uint32(id >> 32))}
	if err := p.control(raw, unix.EPOLL_CTL_ADD, &e); err != nil {
		// The connection is closed: treat the peer as gone.
		if gone := p.take(id); gone != nil {
			gone()
		}
	}
	return func() {
		p.take(id)
		// This fails only on a closed connection, which needs no removal.
		_ = p.control(raw, unix.EPOLL_CTL_DEL, &e)
	}
}

func token(e unix.EpollEvent) uint64 {
	return uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
}

func (p *peers) take(id uint64) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := p.gone[id]
	delete(p.gone, id)
	return gone
}

// control applies op to the descriptor of raw while both it and the epoll
// instance are held open.
func (p *peers) control(raw syscall.RawConn, op int, e *unix.EpollEvent) error {
	var done error
	err := p.raw.Control(func(epoll uintptr) {
		err := raw.Control(func(fd uintptr) {
			done = unix.EpollCtl(int(epoll), op, int(fd), e)
		})
		done = errors.Join(done, err)
	})
	return errors.Join(done, err)
}

func rawConn(c net.Conn) syscall.RawConn {
	for {
		switch t := c.(type) {
		case *conn:
			c = t.Conn
		case interface{ NetConn() net.Conn }: // TLS
			c = t.NetConn()
		case syscall.Conn:
			raw, err := t.SyscallConn()
			if err != nil {
				return nil
			}
			return raw
		default:
			return nil
		}
	}
}
