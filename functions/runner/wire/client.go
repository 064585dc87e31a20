package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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
	frames frameReader
	ready  bool
}

// NewClient returns a client on conn. The caller keeps the ownership of conn
// and closes it.
func NewClient(conn net.Conn) *Client {
	return &Client{conn: conn, frames: frameReader{r: bufio.NewReaderSize(conn, 32<<10), max: maxFrame}}
}

// Ready waits until the runner can take a run.
func (c *Client) Ready(ctx context.Context) error {
	if c.ready {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	t, payload, err := c.frames.next()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for the runner: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("waiting for the runner: %w", err)
	case t == frameFailure:
		return decodeFailure(payload)
	case t != frameReady:
		return fmt.Errorf("%w: %q instead of ready", errFrame, t)
	}
	c.ready = true
	return nil
}

// Execute hands run over and feeds sink until the runner reports the exit.
// When ctx ends the program is cancelled, and the outcome still returned if
// the runner reports it within a second. Other ends of the connection, and
// failures of the runner (*Failure), are errors.
func (c *Client) Execute(ctx context.Context, run Run, sink Sink) (Outcome, error) {
	if err := c.Ready(ctx); err != nil {
		return Outcome{}, err
	}
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	if err := writeJSON(c.conn, frameRun, run); err != nil {
		return Outcome{}, fmt.Errorf("sending the run: %w", err)
	}
	in := incoming{ctx: ctx, sink: sink, limits: run.Limits}
	for {
		t, payload, err := c.frames.next()
		if err != nil {
			if ctx.Err() != nil {
				err = errors.Join(err, context.Cause(ctx))
			}
			return Outcome{}, fmt.Errorf("reading from the runner: %w", err)
		}
		if t == frameExit {
			var out Outcome
			if err := json.Unmarshal(payload, &out); err != nil {
				return Outcome{}, fmt.Errorf("%w: exit: %w", errFrame, err)
			}
			return out, nil
		}
		if err := in.frame(t, payload); err != nil {
			return Outcome{}, err
		}
	}
}

// cancel asks the runner to end and bounds the wait for its answer.
func (c *Client) cancel() {
	now := time.Now()
	_ = c.conn.SetReadDeadline(now.Add(cancelGrace))
	_ = c.conn.SetWriteDeadline(now.Add(cancelGrace))
	_ = writeFrame(c.conn, frameCancel, nil)
}

func decodeFailure(payload []byte) error {
	f := new(Failure)
	if err := json.Unmarshal(payload, f); err != nil {
		return fmt.Errorf("%w: failure: %w", errFrame, err)
	}
	return f
}
