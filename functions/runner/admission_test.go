package runner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// door is a sandbox's listener with nothing behind it: a run that is accepted
// succeeds when finish is closed.
type door struct {
	admission
	address string
	finish  chan struct{}
	// end yields what listen returns.
	end chan error
	// serving and most count connections, read the bytes that are taken of them.
	serving, most, read atomic.Int64
}

func newDoor(t *testing.T, limits timeouts) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte("t"))
	d := &door{admission: admission{tokenHash: hash[:]}, address: l.Addr().String(), finish: make(chan struct{}), end: make(chan error, 1)}
	d.open(l)
	go func() { d.end <- listen(l, func(conn net.Conn) error { return d.serve(conn, limits) }) }()
	t.Cleanup(func() { _ = l.Close() })
	return d
}

func (d *door) serve(conn net.Conn, limits timeouts) error {
	defer d.serving.Add(-1)
	for n := d.serving.Add(1); n > d.most.Load(); {
		d.most.Store(n)
	}
	s := wire.NewServer(counted{conn, &d.read})
	if _, _, err := d.admit(conn, s, limits); err != nil {
		return err
	}
	if err := s.Started(); err != nil {
		return err
	}
	<-d.finish
	return s.Exit(wire.Outcome{Status: execution.StatusSucceeded})
}

// ended waits until nothing listens any more.
func (d *door) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-d.end:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("it still listens")
		return nil
	}
}

type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// dial connects to the door until the test's end.
func (d *door) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// events is a sink that calls it when the program has started.
type events func()

func (e events) Started()                             { e() }
func (events) Output(execution.Stream, []byte, int64) {}
func (events) Result(execution.RichResult)            {}
func (events) Artifact(execution.Artifact)            {}
func program(size int) wire.Run                       { return wire.Run{Language: "python", Code: make([]byte, size)} }
func code(err error) wire.FailureCode {
	var f *wire.Failure
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

// generous is longer than a test may take.
var generous = timeouts{hello: time.Hour, wait: time.Hour, run: time.Hour}

// TestTheTokenComesFirst: a connection without the token is told so, and little
// is read of what it sends.
func TestTheTokenComesFirst(t *testing.T) {
	const most = 64 << 10
	old := func(payload string) []byte { // a run of version 1
		return append(binary.BigEndian.AppendUint32([]byte{'q'}, 32<<20), payload...)
	}
	for name, send := range map[string]func(net.Conn) error{
		"with a run": func(c net.Conn) error {
			_, err := wire.NewClient(c, "x").Execute(t.Context(), program(16<<20), events(func() {}))
			return err
		},
		"without a run": func(c net.Conn) error {
			client := wire.NewClient(c, "")
			if err := client.Hello(t.Context()); err != nil {
				return err
			}
			_, err := client.Execute(t.Context(), program(1), events(func() {}))
			return err
		},
		"version 1": func(c net.Conn) error {
			_, err := c.Write(append(old(`{"token":"x","code":"`), bytes.Repeat([]byte("x"), 1<<20)...))
			return errors.Join(err, readFailure(c))
		},
		"version 1 without a token": func(c net.Conn) error {
			_, err := c.Write(append(old(`{"code":"`), bytes.Repeat([]byte("x"), 1<<20)...))
			return errors.Join(err, readFailure(c))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, generous)
			if err := send(d.dial(t)); code(err) != wire.FailureToken {
				t.Errorf("the error is %v", err)
			}
			if n := d.read.Load(); n > most {
				t.Errorf("%d bytes were read", n)
			}
			if !d.idle() {
				t.Error("the sandbox is used")
			}
		})
	}
}

// readFailure reads a ready frame and a failure.
func readFailure(c net.Conn) error {
	_, err := wire.NewClient(answers{c}, "").Execute(context.Background(), wire.Run{}, events(func() {}))
	return err
}

// answers is a connection on which nothing more is sent.
type answers struct{ net.Conn }

func (answers) Write(p []byte) (int, error) { return len(p), nil }

// TestOneRunEndsTheListener: with the run that is accepted nobody else can
// connect, and those that have are told.
func TestOneRunEndsTheListener(t *testing.T) {
	d := newDoor(t, generous)
	const rivals = 5
	var claimants [rivals]*wire.Client
	for i := range claimants {
		claimants[i] = wire.NewClient(d.dial(t), "t")
		if err := claimants[i].Hello(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	silent := d.dial(t)
	if err := wire.NewClient(silent, "t").Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var accepted, refused atomic.Int64
	var work sync.WaitGroup
	for _, c := range claimants {
		work.Go(func() {
			_, err := c.Execute(t.Context(), program(1<<20), events(func() {
				if conn, err := net.Dial("tcp", d.address); err == nil {
					t.Error("somebody could still connect")
					_ = conn.Close()
				}
				accepted.Add(1)
			}))
			switch {
			case code(err) == wire.FailureUsed:
				if refused.Add(1) == rivals-1 {
					close(d.finish)
				}
			case err != nil:
				t.Errorf("the error is %v", err)
			}
		})
	}
	work.Wait()
	if accepted.Load() != 1 || refused.Load() != rivals-1 {
		t.Errorf("%d were accepted and %d refused", accepted.Load(), refused.Load())
	}
	if err := d.ended(t); err != nil {
		t.Errorf("the listener: %v", err)
	}
	if rest, err := io.ReadAll(silent); err != nil || !bytes.Contains(rest, []byte("used")) {
		t.Errorf("the silent connection got %q, %v", rest, err)
	}
}

// TestSilentConnectionsEnd: few connections are served at once, those that do
// not come to their point end, and one that does is served after all.
func TestSilentConnectionsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		timeouts timeouts
		say      string
	}{
		"nothing":           {timeouts{hello: 50 * time.Millisecond, wait: time.Minute, run: time.Minute}, ""},
		"half a hello":      {timeouts{hello: 50 * time.Millisecond, wait: time.Minute, run: time.Minute}, "h\x00\x00"},
		"a hello":           {timeouts{hello: time.Minute, wait: 50 * time.Millisecond, run: time.Minute}, "h\x00\x00\x00\x26" + `{"version":2,"token":"t","role":"run"}`},
		"half a run's head": {timeouts{hello: time.Minute, wait: 50 * time.Millisecond, run: time.Minute}, "h\x00\x00\x00\x26" + `{"version":2,"token":"t","role":"run"}` + "q\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, test.timeouts)
			close(d.finish)
			for range 2 * maxConns {
				if _, err := io.WriteString(d.dial(t), test.say); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := wire.NewClient(d.dial(t), "t").Execute(t.Context(), program(1), events(func() {})); err != nil {
				t.Errorf("the run: %v", err)
			}
			if err := d.ended(t); err != nil {
				t.Errorf("the listener: %v", err)
			}
			if n := d.most.Load(); n > maxConns {
				t.Errorf("%d connections were served at once", n)
			}
		})
	}
}

// TestRunThatDoesNotArrive: a run that is begun uses the sandbox up, and ends
// when it does not arrive.
func TestRunThatDoesNotArrive(t *testing.T) {
	d := newDoor(t, timeouts{hello: time.Minute, wait: time.Minute, run: 50 * time.Millisecond})
	conn := d.dial(t)
	if err := wire.NewClient(conn, "t").Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "q\x00\x00\x01\x00{"); err != nil {
		t.Fatal(err)
	}
	if err := d.ended(t); err == nil || errors.Is(err, ErrNoRun) {
		t.Errorf("the listener: %v", err)
	}
	if d.idle() {
		t.Error("the sandbox is not used up")
	}
}

// TestVersion1IsServed: a claimant that knows of no hello runs its program.
func TestVersion1IsServed(t *testing.T) {
	d := newDoor(t, generous)
	close(d.finish)
	conn := d.dial(t)
	if _, err := io.WriteString(conn, "q\x00\x00\x00\x1f"+`{"token":"t","language":"bash"}`); err != nil {
		t.Fatal(err)
	}
	if err := readFailure(conn); err != nil {
		t.Errorf("the run: %v", err)
	}
}
