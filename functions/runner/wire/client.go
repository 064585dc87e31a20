package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// cancelGrace is how long a cancelled runner may take to report its exit.
const cancelGrace = time.Second

// Client is execute's end of a connection to a runner. It serves one Execute
// and is used by one goroutine at a time.
type Client struct {
	conn   net.Conn
	token  string
	frames frameReader
	// version is that of the connection, 0 until the runner is ready.
	version int
	// greeted says that the hello has been sent.
	greeted bool
}

// NewClient returns a client on conn for a sandbox with token, which is empty
// where the sandbox has none. The caller keeps the ownership of conn and closes
// it.
func NewClient(conn net.Conn, token string) *Client {
	return &Client{conn: conn, token: token, frames: frameReader{r: bufio.NewReaderSize(conn, 32<<10), max: maxFrame}}
}

// Ready waits until the runner can take a run.
func (c *Client) Ready(ctx context.Context) error {
	if c.version != 0 {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })
	t, payload, err := c.frames.next()
	switch {
	case !stop():
		return fmt.Errorf("waiting for the runner: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("waiting for the runner: %w", err)
	case t == frameFailure:
		return decodeFailure(payload)
	case t != frameReady:
		return fmt.Errorf("%w: %q instead of ready", errFrame, t)
	}
	r := readiness{oldest}
	if len(payload) > 0 {
		r = readiness{}
		if err := json.Unmarshal(payload, &r); err != nil || r.Version < oldest {
			return fmt.Errorf("%w: ready: %.100q", errFrame, payload)
		}
	}
	c.version = min(r.Version, Version)
	return nil
}

// Hello waits until the runner can take a run and shows it the token, so that
// the runner keeps the connection until there is a run. Execute does what has
// not been done.
func (c *Client) Hello(ctx context.Context) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	b, err := c.hello(nil)
	if err != nil || len(b) == 0 {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetWriteDeadline(time.Unix(1, 0)) })
	_, err = c.conn.Write(b)
	switch {
	case !stop():
		return fmt.Errorf("sending the hello: %w", context.Cause(ctx))
	case err != nil:
		return c.refused(fmt.Errorf("sending the hello: %w", err))
	}
	return nil
}

// hello appends the hello to b, once and if there is one.
func (c *Client) hello(b []byte) ([]byte, error) {
	if c.greeted || c.version == oldest {
		return b, nil
	}
	c.greeted = true
	return appendJSON(b, frameHello, Hello{Version: c.version, Token: c.token, Role: RoleRun})
}

// send sends what has not been sent of hello and run, in one Write.
func (c *Client) send(run Run) error {
	b, err := c.hello(nil)
	if err != nil {
		return err
	}
	if c.version == oldest {
		run.Token = c.token
	}
	if b, err = appendJSON(b, frameRun, run); err != nil {
		return err
	}
	if _, err := c.conn.Write(b); err != nil {
		return c.refused(fmt.Errorf("sending the run: %w", err))
	}
	return nil
}

// refused is why the runner does not read on, if it has said so, or else err.
func (c *Client) refused(err error) error {
	_ = c.conn.SetReadDeadline(time.Now().Add(cancelGrace))
	if t, payload, readErr := c.frames.next(); readErr == nil && t == frameFailure {
		return decodeFailure(payload)
	}
	return err
}

// Execute hands run over and feeds sink until the runner reports the exit.
// When ctx ends the program is cancelled, and the outcome still returned if
// the runner reports it within a second. Other ends of the connection, and
// failures of the runner (*Failure), are errors.
func (c *Client) Execute(ctx context.Context, run Run, sink Sink) (Outcome, error) {
	if err := c.Ready(ctx); err != nil {
		return Outcome{}, err
	}
	if ctx.Err() != nil {
		return Outcome{}, fmt.Errorf("sending the run: %w", context.Cause(ctx))
	}
	stop := context.AfterFunc(ctx, func() { c.cancel(cancelGrace) })
	defer stop()
	if err := c.send(run); err != nil {
		return Outcome{}, err
	}
	var out Outcome
	if err := c.receive(ctx, run.Limits, sink, &out); err != nil {
		return Outcome{}, err
	}
	return out, nil
}

// receive feeds sink until the runner reports the exit, which goes to out.
func (c *Client) receive(ctx context.Context, limits Limits, sink Sink, out any) error {
	in := incoming{ctx: ctx, sink: sink, limits: limits}
	for {
		t, payload, err := c.frames.next()
		if err != nil {
			return fmt.Errorf("reading from the runner: %w", withCause(ctx, err))
		}
		if t == frameExit {
			if err := json.Unmarshal(payload, out); err != nil {
				return fmt.Errorf("%w: exit: %w", errFrame, err)
			}
			return nil
		}
		if err := in.frame(t, payload); err != nil {
			return err
		}
	}
}

// cancel asks the runner to end and bounds the wait for its answer.
func (c *Client) cancel(grace time.Duration) {
	now := time.Now()
	_ = c.conn.SetReadDeadline(now.Add(grace))
	_ = c.conn.SetWriteDeadline(now.Add(grace))
	_ = writeFrame(c.conn, frameCancel, nil)
}

func decodeFailure(payload []byte) error {
	f := new(Failure)
	if err := json.Unmarshal(payload, f); err != nil {
		return fmt.Errorf("%w: failure: %w", errFrame, err)
	}
	return f
}
