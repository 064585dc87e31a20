package server

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/budget"
)

// HeaderRequestID carries the request's id in both directions.
const HeaderRequestID = "X-Request-Id"

const maxRequestID = 128

// exchange is one request and its response. It ends when the handler has
// returned or, for a streamed response, when the stream has ended.
type exchange struct {
	server *Server
	id     string
	log    *slog.Logger
	start  time.Time

	ctx    context.Context
	cancel context.CancelCauseFunc
	// memory is what the exchange holds of the server's budget.
	memory *budget.Account
	// body says that memory has been taken for the request's body.
	body bool
	// unwatch is set once the peer is being watched.
	unwatch func()
	// streamed says that the stream, not the handler, ends the exchange.
	streamed bool

	// onGone is what a stream wants done when the peer has gone.
	mu     sync.Mutex
	onGone func()
}

type localKey struct{}

type contextKey struct{}

func exchangeOf(c *fiber.Ctx) *exchange {
	x, _ := c.Locals(localKey{}).(*exchange)
	return x
}

// exchange is the outermost middleware.
func (s *Server) exchange(c *fiber.Ctx) error {
	x := s.begin(c)
	c.Locals(localKey{}, x)
	c.Set(HeaderRequestID, x.id)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	select {
	case <-s.leaving:
		c.Context().SetConnectionClose()
	default:
	}
	entry := x.entry(c)
	defer func() {
		if x.streamed {
			return
		}
		entry.status = c.Response().StatusCode()
		if !c.Response().IsBodyStream() {
			entry.sent = int64(len(c.Response().Body()))
		}
		x.end(entry)
	}()
	if err := x.next(c); err != nil {
		entry.err = err
		s.answer(c, x, err)
	}
	return nil
}

func (s *Server) begin(c *fiber.Ctx) *exchange {
	id := c.Get(HeaderRequestID)
	if !validRequestID(id) {
		id = uuid.NewString()
	}
	x := &exchange{server: s, id: id, log: s.log.With("request_id", id), start: time.Now()}
	ctx, cancel := context.WithCancelCause(s.base)
	ctx = propagation.TraceContext{}.Extract(ctx, headers{c})
	x.memory = s.config.Budget.Open()
	x.ctx, x.cancel = budget.With(context.WithValue(ctx, contextKey{}, x), x.memory), cancel
	return x
}

// headers are those of a request, for whoever reads its trace from them.
type headers struct{ c *fiber.Ctx }

// Get implements propagation.TextMapCarrier.
func (h headers) Get(key string) string { return strings.Clone(h.c.Get(key)) }

// Set implements propagation.TextMapCarrier: nobody writes to a request.
func (headers) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (h headers) Keys() (keys []string) {
	h.c.Request().Header.VisitAll(func(name, _ []byte) { keys = append(keys, string(name)) })
	return keys
}

// next runs the handlers and turns a panic into an error.
func (x *exchange) next(c *fiber.Ctx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			x.log.Error("panic in a handler", "panic", r, "stack", string(debug.Stack()))
			err = execution.NewProblem(execution.ProblemInternal, "The server failed to handle the request.")
		}
	}()
	return c.Next()
}

// watch has the peer watched from now until the exchange ends.
func (x *exchange) watch(c *fiber.Ctx) {
	if x.unwatch != nil {
		return
	}
	x.unwatch = x.server.peers.watch(c.Context().Conn(), func() {
		x.cancel(ErrPeerGone)
		x.mu.Lock()
		gone := x.onGone
		x.mu.Unlock()
		if gone != nil {
			gone()
		}
	})
}

func (x *exchange) whenGone(f func()) {
	x.mu.Lock()
	x.onGone = f
	x.mu.Unlock()
	if errors.Is(context.Cause(x.ctx), ErrPeerGone) {
		f()
	}
}

func (x *exchange) end(e *entry) {
	if x.unwatch != nil {
		x.unwatch()
	}
	e.write(x)
	x.cancel(ErrDone)
	x.memory.Close()
}

// Context returns the context of c's exchange. It ends moments after the
// client's connection was closed (cause ErrPeerGone), when the server is cut
// at shutdown (ErrShutdown) and when the response is complete (ErrDone). It
// knows the request's id and logger, and belongs to the trace of its traceparent.
func Context(c *fiber.Ctx) context.Context {
	x := exchangeOf(c)
	if x == nil {
		return c.UserContext()
	}
	x.watch(c)
	return x.ctx
}

// RequestID returns the id of c's request.
func RequestID(c *fiber.Ctx) string {
	if x := exchangeOf(c); x != nil {
		return x.id
	}
	return ""
}

// Logger returns the logger of the exchange to which ctx belongs, which names
// the request's id.
func Logger(ctx context.Context) *slog.Logger {
	if x, ok := ctx.Value(contextKey{}).(*exchange); ok {
		return x.log
	}
	return slog.Default()
}

// Draining returns a channel that is closed when the server of ctx begins to
// shut down. Streams without an end of their own should then end.
func Draining(ctx context.Context) <-chan struct{} {
	if x, ok := ctx.Value(contextKey{}).(*exchange); ok {
		return x.server.draining
	}
	return nil
}

func validRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for _, b := range []byte(id) {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		case b == '-', b == '_', b == '.', b == ':':
		default:
			return false
		}
	}
	return true
}

// entry is a line of the access log.
type entry struct {
	method, path, remote string
	received             int
	quiet                bool

	status int
	sent   int64
	err    error
}

func (x *exchange) entry(c *fiber.Ctx) *entry {
	return &entry{
		method: c.Method(), path: c.Path(), remote: c.Context().RemoteAddr().String(),
		received: len(c.Request().Body()), quiet: slices.Contains(x.server.config.Quiet, c.Path()),
	}
}

func (e *entry) write(x *exchange) {
	level := slog.LevelInfo
	switch {
	case e.quiet:
		level = slog.LevelDebug
	case e.status >= fiber.StatusInternalServerError:
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("method", e.method), slog.String("path", e.path), slog.Int("status", e.status),
		slog.Float64("duration_ms", float64(time.Since(x.start).Microseconds())/1000),
		slog.Int("bytes_in", e.received), slog.Int64("bytes_out", e.sent),
		slog.String("remote", e.remote), slog.Bool("streamed", x.streamed),
	}
	var p *execution.Problem
	switch {
	case errors.As(e.err, &p):
		// Its detail may quote the request.
		attrs = append(attrs, slog.String("problem", p.Type))
	case e.err != nil:
		attrs = append(attrs, slog.String("error", e.err.Error()))
	}
	if errors.Is(context.Cause(x.ctx), ErrPeerGone) {
		attrs = append(attrs, slog.Bool("client_gone", true))
	}
	x.log.LogAttrs(x.ctx, level, "request", attrs...)
}
