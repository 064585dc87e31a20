package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
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

// exchange is one request and its response. It lives in the goroutine of its
// connection.
type exchange struct {
	server *Server
	conn   *conn
	id     string
	log    *slog.Logger
	start  time.Time

	request  *http.Request
	body     *requestBody
	response *response

	ctx    context.Context
	cancel context.CancelCauseFunc
	// unhook ends what passes other contexts' ends on to ctx.
	unhook func()
	// memory is what the exchange holds of the server's budget.
	memory *budget.Account

	// What a handler of fiber leaves for after its return: its error, another
	// handler, or the producer of a stream.
	err     error
	native  func(http.ResponseWriter, *http.Request) error
	produce func() error
	// streamed says that a producer wrote the response.
	streamed bool
	// abort says that the response is incomplete, and must look so.
	abort bool
}

type contextKey struct{}

type connKey struct{}

// ServeHTTP implements http.Handler for the server's own connections.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := s.begin(w, r)
	defer x.end()
	if err := x.handle(); err != nil {
		x.fail(err)
	}
}

func (s *Server) begin(w http.ResponseWriter, r *http.Request) *exchange {
	id := r.Header.Get(HeaderRequestID)
	if !validRequestID(id) {
		id = uuid.NewString()
	}
	x := &exchange{server: s, id: id, log: s.log.With("request_id", id), start: time.Now()}
	x.conn, _ = r.Context().Value(connKey{}).(*conn)
	x.memory = s.config.Budget.Open()

	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	gone := context.AfterFunc(r.Context(), func() {
		if !x.conn.bodyFailed.Load() {
			cancel(ErrPeerGone)
		}
	})
	cut := context.AfterFunc(s.base, func() { cancel(context.Cause(s.base)) })
	x.unhook = func() { gone(); cut() }
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	x.ctx, x.cancel = budget.With(context.WithValue(ctx, contextKey{}, x), x.memory), cancel

	x.request = r.WithContext(x.ctx)
	x.body = newRequestBody(x, r)
	x.request.Body = x.body
	x.response = &response{ResponseWriter: w, exchange: x}
	h := w.Header()
	h.Set(HeaderRequestID, id)
	h.Set("X-Content-Type-Options", "nosniff")
	// Answers need not wait for the rest of a body that nobody reads.
	_ = http.NewResponseController(w).EnableFullDuplex()
	return x
}

// handle runs the handlers and turns a panic into an error.
func (x *exchange) handle() (err error) {
	defer func() {
		switch r := recover(); {
		case r == nil:
		case r == http.ErrAbortHandler:
			x.abort = true
		default:
			x.log.Error("panic in a handler", "panic", r, "stack", string(debug.Stack()))
			err = errors.New("a handler panicked")
		}
	}()
	if r := x.conn.refused; r != nil {
		return refused(r)
	}
	if err := x.server.guard.check(x.response, x.request); err != nil {
		return err
	}
	if err := x.route(); err != nil {
		return err
	}
	switch {
	case x.native != nil:
		return x.native(x.response, x.request)
	case x.produce != nil:
		return x.stream()
	}
	return nil
}

func refused(r *refusal) error {
	if r.status == http.StatusBadRequest {
		return execution.NewProblem(execution.ProblemMalformed, "%s", r.detail)
	}
	return plain(r.status, r.detail)
}

// stream runs the producer. The response has begun, so that an error cuts it.
func (x *exchange) stream() error {
	x.streamed = true
	x.response.WriteHeader(x.response.status)
	x.response.Flush()
	return x.produce()
}

// end completes the response. It panics, as net/http has it, to break off an
// incomplete one.
func (x *exchange) end() {
	w := x.response
	if !w.wrote && !x.abort {
		w.WriteHeader(http.StatusOK)
	}
	x.unhook()
	x.log.LogAttrs(x.ctx, x.level(), "request", x.entry()...)
	x.cancel(ErrDone)
	x.memory.Close()
	if x.abort {
		panic(http.ErrAbortHandler)
	}
	x.body.finish()
}

// Context returns the context of c's exchange. It ends moments after the
// client's connection was closed (cause ErrPeerGone), when the server is cut
// at shutdown (ErrShutdown) and when the response is complete (ErrDone). A
// client that leaves while nobody reads its body is noticed at the next write
// or read. It knows the request's id and logger, and belongs to the trace of its
// traceparent.
func Context(c *fiber.Ctx) context.Context {
	if x := exchangeOf(c); x != nil {
		return x.ctx
	}
	return c.UserContext()
}

// RequestID returns the id of c's request.
func RequestID(c *fiber.Ctx) string {
	if x := exchangeOf(c); x != nil {
		return x.id
	}
	return ""
}

// ID returns the id of the request to whose exchange ctx belongs.
func ID(ctx context.Context) string {
	if x, ok := ctx.Value(contextKey{}).(*exchange); ok {
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
		if !letter(b) && !digit(b) && b != '-' && b != '_' && b != '.' && b != ':' {
			return false
		}
	}
	return true
}
