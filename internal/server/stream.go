package server

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
)

// StreamBytes answers c with status 200 and a body that produce writes. What
// each Write takes is sent at once. produce runs after the handler returned,
// in a goroutine that the connection waits for: it must not touch c, whose
// values are another request's by then, which is why it is given all it needs.
//
// ctx is the exchange's context. Write fails when the client is gone or does
// not read for the server's write timeout. A body that produce leaves by an
// error is cut, so that the client can tell it from a complete one.
func StreamBytes(c *fiber.Ctx, produce func(ctx context.Context, w io.Writer) error) error {
	x := exchangeOf(c)
	if x == nil {
		return errors.New("stream: the app was not made by this package")
	}
	if c.Method() == fiber.MethodHead {
		// fasthttp would end the body that it does not send, in the midst
		// of a kept-alive connection.
		return nil
	}
	x.watch(c)
	entry := x.entry(c)
	entry.status = c.Response().StatusCode()
	x.streamed = true
	r, w := io.Pipe()
	b := &body{
		exchange: x, entry: entry, conn: c.Context().Conn(), timeout: x.server.config.WriteTimeout,
		reader: r, writer: w, produce: produce, done: make(chan struct{}),
	}
	x.whenGone(func() { _ = r.CloseWithError(ErrPeerGone) })
	c.Response().ImmediateHeaderFlush = true
	c.Response().SetBodyStream(b, -1)
	return nil
}

// body is a streamed response's body. fasthttp reads it in the connection's
// goroutine, sends each piece that Read returned, and closes it once, whatever
// happened.
type body struct {
	exchange *exchange
	entry    *entry
	conn     net.Conn
	timeout  time.Duration
	produce  func(context.Context, io.Writer) error

	reader *io.PipeReader
	writer *io.PipeWriter
	// started: there is a producer. ended: Read has returned its error.
	started bool
	ended   bool
	done    chan struct{}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if !b.started {
		b.started = true
		go b.run()
	}
	n, err := b.reader.Read(p)
	if err != nil {
		b.ended = true
		if !errors.Is(err, io.EOF) {
			b.entry.err = err
		}
	}
	b.entry.sent += int64(n)
	// The deadline is for the write that follows this read.
	_ = b.conn.SetWriteDeadline(time.Now().Add(b.timeout))
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	x := b.exchange
	if b.started && !b.ended {
		// The connection did not take what it was given.
		x.cancel(ErrPeerGone)
	}
	_ = b.reader.CloseWithError(ErrPeerGone)
	if b.started {
		<-b.done
	}
	x.end(b.entry)
	return nil
}

func (b *body) run() {
	defer close(b.done)
	err := errors.New("the producer panicked")
	defer func() {
		if r := recover(); r != nil {
			b.exchange.log.Error("panic in a stream", "panic", r, "stack", string(debug.Stack()))
		}
		_ = b.writer.CloseWithError(err)
	}()
	err = b.produce(b.exchange.ctx, b.writer)
}
