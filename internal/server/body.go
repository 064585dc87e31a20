package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// Body reads c's body when it is called first, without undoing any content
// coding. Until then nothing of it is in memory, which is why c's own ways to
// a body find none. It counts against the server's budget until the exchange
// ends. A body beyond Config.BodyLimit is a problem (413), one that does not
// come in time (408), and one for which there is no memory (503) that asks to
// come again.
func Body(c *fiber.Ctx) ([]byte, error) {
	x := exchangeOf(c)
	if x == nil {
		return nil, errForeign
	}
	return x.body.whole()
}

// StreamBody returns c's body as it comes, which may have as many as limit
// bytes, whatever Config.BodyLimit is: nothing of it is kept. Each piece must
// come within Config.BodyTimeout, the whole may take longer. Errors are fit to be a
// handler's. It also works in a handler that Native runs.
func StreamBody(c *fiber.Ctx, limit int64) (io.Reader, error) {
	x := exchangeOf(c)
	if x == nil {
		return nil, errForeign
	}
	x.body.limit, x.body.streamed, x.conn.bodyLimit = limit, true, limit
	x.body.beyond = execution.NewProblem(execution.ProblemTooLarge, "The body exceeds %d bytes.", limit)
	return x.body, nil
}

// decodedCopies is how often what a body of BodyWithin says is there once more:
// decoded, or as it is sent on.
const decodedCopies = 1

// BodyWithin is Body for a handler with a limit of its own, in bytes, and the
// problem of a body beyond it. Memory is taken for what the handler decodes
// from the body, too. The server's limit holds in any case.
func BodyWithin(c *fiber.Ctx, limit int64, tooLarge *execution.Problem) ([]byte, error) {
	x := exchangeOf(c)
	if x == nil {
		return nil, errForeign
	}
	if limit <= x.body.limit {
		x.body.limit, x.body.beyond = limit, tooLarge
	}
	body, err := x.body.whole()
	if err == nil && x.memory.Take(int64(decodedCopies*len(body))) != nil {
		return nil, noMemory()
	}
	return body, err
}

// Encode answers c with a body that write writes, straight into the response.
// An error before anything was sent is the handler's; after that the body is
// cut, so that the client can tell it from a complete one. What c's response
// says of its status and headers must be said before.
func Encode(c *fiber.Ctx, mediaType string, write func(io.Writer) error) error {
	x := exchangeOf(c)
	if x == nil {
		return errForeign
	}
	c.Set(fiber.HeaderContentType, mediaType)
	if err := write(&encoder{exchange: x, c: c}); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return nil
}

// encoder sends the head with the first bytes of the body.
type encoder struct {
	exchange *exchange
	c        *fiber.Ctx
}

func (e *encoder) Write(p []byte) (int, error) {
	x := e.exchange
	if len(p) > 0 && !x.response.wrote {
		x.copyHead(&e.c.Context().Response, true)
		x.response.WriteHeader(e.c.Response().StatusCode())
	}
	return x.response.Write(p)
}

// firstRead is how much is set aside for a body's first bytes.
const firstRead = 8 << 10

// requestBody is a request's body as handlers get it: bounded in size and time.
type requestBody struct {
	io.ReadCloser
	exchange *exchange
	length   int64
	limit    int64
	expects  bool
	// limit bounds the body; beyond it, it is the problem beyond.
	beyond *execution.Problem
	// streamed: the time for the body is one for each piece.
	streamed bool

	received int64
	begun    bool
	ended    bool
	err      error
	// all is the whole body, once it was asked for.
	all []byte
}

func newRequestBody(x *exchange, r *http.Request) *requestBody {
	limit := int64(x.server.config.BodyLimit)
	x.conn.bodyLimit = limit
	return &requestBody{
		limit: limit, beyond: execution.NewProblem(execution.ProblemTooLarge, "The body exceeds %d bytes.", limit),
		ReadCloser: r.Body, exchange: x, length: r.ContentLength, expects: r.Header.Get("Expect") != "", ended: r.ContentLength == 0,
	}
}

// Read implements io.Reader. Its errors are fit to be a handler's.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.length > b.limit {
		b.err = b.tooLarge()
		return 0, b.err
	}
	if b.ended {
		return 0, io.EOF
	}
	if !b.begun || b.streamed {
		b.begun = true
		_ = b.exchange.conn.SetReadDeadline(time.Now().Add(b.exchange.server.config.BodyTimeout))
	}
	if left := b.limit - b.received + 1; int64(len(p)) > left {
		p = p[:left]
	}
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	switch {
	case b.received > b.limit:
		b.err = b.tooLarge()
		return 0, b.err
	case errors.Is(err, io.EOF):
		b.ended = true
		_ = b.exchange.conn.SetReadDeadline(time.Time{})
	case err != nil:
		b.err = b.explain(err)
		return n, b.err
	}
	return n, err
}

func (b *requestBody) tooLarge() error {
	own := *b.beyond
	return &own
}

func (b *requestBody) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return plain(http.StatusRequestTimeout, "The request did not arrive in time.")
	}
	if errors.Is(err, errTooLarge) {
		return b.tooLarge()
	}
	var broken *net.OpError
	if errors.As(err, &broken) {
		b.exchange.cancel(ErrPeerGone)
		return ErrPeerGone
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		// A client that has closed its half only can still read the answer.
		return execution.NewProblem(execution.ProblemMalformed, "The body ends before its length is reached.")
	}
	return execution.NewProblem(execution.ProblemMalformed, "The body is not framed as its header says.")
}

// whole returns all of the body, for which memory is taken as it comes.
func (b *requestBody) whole() ([]byte, error) {
	if b.length > b.limit {
		return nil, b.tooLarge()
	}
	for !b.ended {
		if len(b.all) == cap(b.all) {
			if err := b.grow(); err != nil {
				return nil, err
			}
		}
		n, err := b.Read(b.all[len(b.all):cap(b.all)])
		b.all = b.all[:len(b.all)+n]
		if err != nil && !errors.Is(err, io.EOF) {
			b.all = nil
			return nil, err
		}
	}
	return b.all, nil
}

func (b *requestBody) grow() error {
	size := max(firstRead, 4*cap(b.all))
	if b.length > 0 {
		size = min(size, int(b.length))
	} else {
		size = min(size, int(b.limit)+1)
	}
	if err := b.exchange.memory.Take(int64(size - cap(b.all))); err != nil {
		b.all, b.err = nil, nil
		return noMemory()
	}
	grown := make([]byte, len(b.all), size)
	copy(grown, b.all)
	b.all = grown
	return nil
}

func noMemory() *execution.Problem {
	p := execution.NewProblem(execution.ProblemNotReady, "There is no memory for the request's body now.")
	p.RetryAfterSeconds = 1
	return p
}

// endsConnection reports whether the body's rest is in the way of another
// request.
func (b *requestBody) endsConnection() bool {
	return !b.ended && (b.err != nil && b.length <= b.limit ||
		b.length < 0 || b.expects || b.length-b.received > keepRest)
}

// finish reads the body's rest, if it is small, or leaves it to the end of the
// connection. The response is complete. net/http must not find a rest itself:
// it would begin to watch for the client's end while it reads the next head.
func (b *requestBody) finish() {
	if b.ended {
		return
	}
	c := b.exchange.conn
	if !b.endsConnection() {
		b.exchange.response.Flush()
		_ = c.SetReadDeadline(time.Now().Add(b.exchange.server.config.BodyTimeout))
		if _, err := io.Copy(io.Discard, b.ReadCloser); err == nil {
			_ = c.SetReadDeadline(time.Time{})
			return
		}
	}
	c.linger.Store(true)
	c.cut.Store(true)
}

// peerGone reports whether an error or ctx's end is due to the client.
func peerGone(ctx context.Context, err error) bool {
	return errors.Is(err, ErrPeerGone) || errors.Is(context.Cause(ctx), ErrPeerGone)
}
