package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// interruptGrace is how long an interrupted run may take to report its exit:
// longer than the runner waits before it kills it.
const interruptGrace = 10 * time.Second

// Open opens the session that op names, with files in its folder.
func (c *Client) Open(ctx context.Context, op Operation, run Run) error {
	op.Kind = OperationOpen
	stop := c.until(ctx)
	defer stop()
	if err := c.operate(ctx, op, &run); err != nil {
		return err
	}
	_, err := c.reply(ctx, nil)
	return err
}

// RunIn is Execute for a run in a session. When ctx ends, the run is interrupted,
// and its outcome still returned if the runner reports it soon.
func (c *Client) RunIn(ctx context.Context, op Operation, run Run, sink Sink) (SessionOutcome, error) {
	op.Kind = OperationRun
	if err := c.Ready(ctx); err != nil {
		return SessionOutcome{}, err
	}
	stop := context.AfterFunc(ctx, func() { c.cancel(interruptGrace) })
	defer stop()
	if err := c.operate(ctx, op, &run); err != nil {
		return SessionOutcome{}, err
	}
	var out SessionOutcome
	if err := c.receive(ctx, run.Limits, sink, &out); err != nil {
		return SessionOutcome{}, err
	}
	return out, nil
}

// Ask carries out an operation that has no content: interrupt, status, remove,
// end, and list, whose files go to each.
func (c *Client) Ask(ctx context.Context, op Operation, each func(SessionFile)) (Reply, error) {
	stop := c.until(ctx)
	defer stop()
	if err := c.operate(ctx, op, nil); err != nil {
		return Reply{}, err
	}
	return c.reply(ctx, each)
}

// Read carries out read. The content can be read until ctx ends; nothing else may
// be done with c.
func (c *Client) Read(ctx context.Context, op Operation) (SessionFile, io.Reader, error) {
	op.Kind = OperationRead
	stop := c.until(ctx)
	if err := c.operate(ctx, op, nil); err != nil {
		stop()
		return SessionFile{}, nil, err
	}
	f, err := c.file(ctx)
	if err != nil {
		stop()
		return SessionFile{}, nil, err
	}
	return f, &content{frames: &c.frames, done: stop}, nil
}

// Archive carries out archive, as Read does.
func (c *Client) Archive(ctx context.Context, op Operation) (io.Reader, error) {
	op.Kind = OperationArchive
	stop := c.until(ctx)
	if err := c.operate(ctx, op, nil); err != nil {
		stop()
		return nil, err
	}
	r := &content{frames: &c.frames, done: stop}
	return r, r.begin()
}

// Write carries out write. Errors of from are returned as they are.
func (c *Client) Write(ctx context.Context, op Operation, from io.Reader) (f SessionFile, created bool, err error) {
	op.Kind = OperationWrite
	stop := c.until(ctx)
	defer stop()
	if err := c.operate(ctx, op, nil); err != nil {
		return f, false, err
	}
	if err := c.sendContent(from); err != nil {
		return f, false, err
	}
	if f, err = c.file(ctx); err != nil {
		return f, false, err
	}
	reply, err := c.reply(ctx, nil)
	return f, reply.Created, err
}

// until has everything on the connection fail once ctx ends, or stop is called.
func (c *Client) until(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
}

// operate sends hello, operation and run, if there is one.
func (c *Client) operate(ctx context.Context, op Operation, run *Run) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	if c.version < sessions {
		return ErrNoSessions
	}
	b, err := appendJSON(nil, frameHello, Hello{Version: c.version, Token: c.token, Role: RoleSession})
	if err != nil {
		return err
	}
	if b, err = appendJSON(b, frameOperation, op); err != nil {
		return err
	}
	if run != nil {
		if b, err = appendJSON(b, frameRun, run); err != nil {
			return err
		}
	}
	if _, err := c.conn.Write(b); err != nil {
		return c.refused(withCause(ctx, fmt.Errorf("sending the operation: %w", err)))
	}
	return nil
}

// sendContent sends what from has in pieces, and its end.
func (c *Client) sendContent(from io.Reader) error {
	piece := make([]byte, pieceLen)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if err := writeFrame(c.conn, frameData, piece[:n]); err != nil {
				return c.refused(fmt.Errorf("sending the content: %w", err))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := writeFrame(c.conn, frameEnd, nil); err != nil {
		return c.refused(fmt.Errorf("sending the content's end: %w", err))
	}
	return nil
}

// reply waits for the operation's reply. Files before it go to each.
func (c *Client) reply(ctx context.Context, each func(SessionFile)) (Reply, error) {
	for {
		t, payload, err := c.frames.next()
		if err != nil {
			return Reply{}, withCause(ctx, fmt.Errorf("reading from the runner: %w", err))
		}
		switch {
		case t == frameFile && each != nil:
			var f SessionFile
			if err := json.Unmarshal(payload, &f); err != nil {
				return Reply{}, fmt.Errorf("%w: file: %w", errFrame, err)
			}
			each(f)
		case t == frameReply:
			var r Reply
			if err := json.Unmarshal(payload, &r); err != nil {
				return Reply{}, fmt.Errorf("%w: reply: %w", errFrame, err)
			}
			return r, nil
		case t == frameFailure:
			return Reply{}, decodeFailure(payload)
		default:
			return Reply{}, fmt.Errorf("%w: unexpected %q", errFrame, t)
		}
	}
}

// file waits for the state of the operation's file.
func (c *Client) file(ctx context.Context) (f SessionFile, err error) {
	t, payload, err := c.frames.next()
	switch {
	case err != nil:
		return f, withCause(ctx, fmt.Errorf("reading from the runner: %w", err))
	case t == frameFailure:
		return f, decodeFailure(payload)
	case t != frameFile:
		return f, fmt.Errorf("%w: %q instead of a file", errFrame, t)
	}
	if err := json.Unmarshal(payload, &f); err != nil {
		return f, fmt.Errorf("%w: file: %w", errFrame, err)
	}
	return f, nil
}

// withCause is err, and why ctx has ended if it has.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return err
}
