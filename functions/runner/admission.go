package runner

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// maxConns bounds the connections that are served at once. Several claimants
// may try to win one sandbox. Further connections wait in the listener's queue.
const maxConns = 16

// refusalTimeout bounds how long it takes to say why a connection is refused.
const refusalTimeout = time.Second

// timeouts bound how long a connection may take. 0 means no bound.
type timeouts struct {
	// hello is the time until it has shown the token, wait until it then begins
	// a run, and run until that is there.
	hello, wait, run time.Duration
}

// networkTimeouts are for connections from the network. A claimant connects
// while it claims the sandbox, and one of version 1 sends nothing before it has
// won it.
var networkTimeouts = timeouts{hello: 10 * time.Second, wait: 30 * time.Second, run: 30 * time.Second}

// admission decides which connection brings the one run of a sandbox. Until
// then each of them costs no more than a small buffer, for a bounded time: the
// token comes first, and the run is accepted before it is read.
type admission struct {
	// tokenHash is the SHA-256 of the token; without it none is needed.
	tokenHash []byte

	mu   sync.Mutex
	used bool
	// listener is closed when the run is accepted, so that the program cannot
	// connect to its own runner.
	listener net.Listener
	// waiting are the connections that have not brought a run.
	waiting map[net.Conn]struct{}
}

// idle reports whether no run has been accepted.
func (a *admission) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.used
}

// open lets connections come through l.
func (a *admission) open(l net.Listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listener = l
}

// admit returns the run that conn brings if it is the sandbox's one, or what opens
// a session in its place and the session's files. The error wraps ErrNoRun if it
// is neither.
func (a *admission) admit(conn net.Conn, s *wire.Server, limits timeouts) (*wire.Operation, wire.Run, error) {
	defer a.forget(conn)
	op, err := a.await(conn, s, limits)
	if err != nil {
		return nil, wire.Run{}, fmt.Errorf("%w: %w", ErrNoRun, errors.Join(err, a.refuse(conn, s, err)))
	}
	_ = conn.SetReadDeadline(deadline(limits.run))
	run, err := s.ReadRun()
	if err != nil {
		a.closeListener()
		return nil, wire.Run{}, errors.Join(err, s.Fail(&wire.Failure{Code: wire.FailureInternal, Detail: err.Error()}))
	}
	_ = conn.SetReadDeadline(time.Time{})
	return op, run, nil
}

// await returns without an error when conn has begun the one run, or the session
// that it opens in its place.
func (a *admission) await(conn net.Conn, s *wire.Server, limits timeouts) (*wire.Operation, error) {
	a.limit(conn, limits.hello)
	if err := s.Ready(); err != nil {
		return nil, fmt.Errorf("reporting ready: %w", err)
	}
	hello, err := s.Hello()
	if err != nil {
		return nil, err
	}
	if err := a.authorize(hello); err != nil {
		return nil, err
	}
	var open *wire.Operation
	if hello.Role == wire.RoleSession {
		op, err := s.ReadOperation()
		if err != nil {
			return nil, err
		}
		if op.Kind != wire.OperationOpen {
			return nil, errNoSession
		}
		open = &op
	}
	a.limit(conn, limits.wait)
	if err := s.AwaitRun(); err != nil {
		return nil, err
	}
	return open, a.take(conn, open != nil)
}

// authorize checks that a connection's other end may use this sandbox.
func (a *admission) authorize(hello wire.Hello) error {
	if len(a.tokenHash) == 0 {
		return nil
	}
	sum := sha256.Sum256([]byte(hello.Token))
	if subtle.ConstantTimeCompare(sum[:], a.tokenHash) != 1 {
		return &wire.Failure{Code: wire.FailureToken, Detail: "the token is not this sandbox's"}
	}
	return nil
}

var errUsed = &wire.Failure{Code: wire.FailureUsed, Detail: "the sandbox has accepted a run before"}

// errNoSession is of the kind of all operations on a session that is not there.
var errNoSession = &wire.Failure{Code: wire.FailureSession, Detail: string(execution.SessionSandboxLost)}

// take accepts the run, or the session, that conn begins, and ends all waiting for
// another. A session goes on to take connections.
func (a *admission) take(conn net.Conn, session bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used {
		return errUsed
	}
	a.used = true
	delete(a.waiting, conn)
	for other := range a.waiting {
		_ = other.SetReadDeadline(time.Unix(1, 0))
	}
	if a.listener != nil && !session {
		_ = a.listener.Close()
	}
	return nil
}

// closeListener lets no more connections come.
func (a *admission) closeListener() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listener != nil {
		_ = a.listener.Close()
	}
}

// refuse reports why conn's run is not accepted. A connection that was silent
// for too long or broke the protocol gets no answer.
func (a *admission) refuse(conn net.Conn, s *wire.Server, why error) error {
	var failure *wire.Failure
	if !errors.As(why, &failure) {
		if a.idle() {
			return nil
		}
		failure = errUsed // another one brought the run meanwhile
	}
	_ = conn.SetWriteDeadline(time.Now().Add(refusalTimeout))
	return s.Fail(failure)
}

// limit bounds how long conn may be silent from now on; not at all once there
// is a run.
func (a *admission) limit(conn net.Conn, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		return
	}
	if a.waiting == nil {
		a.waiting = map[net.Conn]struct{}{}
	}
	a.waiting[conn] = struct{}{}
	_ = conn.SetReadDeadline(deadline(d))
}

func (a *admission) forget(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, conn)
}

// deadline is d from now, or never if d is 0.
func deadline(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// ServeListener serves the connections that come through l until one has
// brought a run and that is over and reported, or the session that one has opened
// is over. It closes l as soon as it has accepted the run.
func (r *Runner) ServeListener(l net.Listener) error {
	r.admission.open(l)
	err := listen(l, func(conn net.Conn) error { return r.serve(conn, networkTimeouts) })
	if s := r.session.Load(); s != nil {
		s.wait()
		return nil
	}
	return err
}

// listen serves connections, maxConns at once, until the listener is closed,
// and returns the error of the one that brought the run.
func listen(l net.Listener, serve func(net.Conn) error) error {
	defer func() { _ = l.Close() }()
	result := make(chan error, 1)
	slots := make(chan struct{}, maxConns)
	var conns sync.WaitGroup
	var acceptErr error
	for {
		slots <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			acceptErr = err
			break
		}
		conns.Go(func() {
			defer func() { <-slots }()
			defer func() { _ = conn.Close() }()
			if err := serve(conn); !errors.Is(err, ErrNoRun) {
				result <- err
			}
		})
	}
	conns.Wait()
	select {
	case err := <-result:
		return err
	default:
		return fmt.Errorf("waiting for the run: %w", acceptErr)
	}
}
