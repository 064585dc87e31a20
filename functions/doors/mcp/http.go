package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/preheat-dev/preheat/functions/doors/capture"
	"github.com/preheat-dev/preheat/internal/server"
)

// Path is where HTTP clients find the server.
const Path = "/mcp"

const headerSession = "Mcp-Session-Id"

// Door serves the protocol over HTTP.
type Door struct {
	protocol http.Handler
	calls    calls
}

// New returns the door, which serves once it is registered.
func New(runner capture.Runner, log *slog.Logger) *Door { return newDoor(newServer(runner, log), log) }

func newDoor(s *mcp.Server, log *slog.Logger) *Door {
	return &Door{protocol: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, Logger: warnings(log),
		// The HTTP server has checked both, by its configuration, and the body.
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	})}
}

// Register adds the route.
func (d *Door) Register(r fiber.Router) { r.All(Path, d.serve) }

func (d *Door) serve(f *fiber.Ctx) error {
	var body []byte
	if f.Method() == fiber.MethodPost {
		var err error
		// It is bounded, and counts as memory of the exchange.
		if body, err = server.Body(f); err != nil {
			return err
		}
	}
	return server.HTTPHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.answer(w, r, body) }))(f)
}

// message is what matters here of a message of a client.
type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params struct {
		RequestID jsontext.Value `json:"requestId"`
	} `json:"params"`
}

func (d *Door) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	var m message
	_ = json.Unmarshal(body, &m) // what is no message is refused below
	session := r.Header.Get(headerSession)
	switch m.Method {
	case "initialize":
		w.Header().Set(headerSession, rand.Text())
	case "notifications/cancelled":
		d.calls.cancel(session, m.Params.RequestID)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer d.calls.add(session, m.ID, cancel)()
	x := &exchange{ctx: ctx, w: &writer{ResponseWriter: w}}
	r = r.WithContext(context.WithValue(ctx, exchangeKey{}, x))
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.protocol.ServeHTTP(x.w, r)
}

// calls are the requests that this process answers now, by their session and
// id. Clients of revisions before 2026-07-28 cancel one by another request; ids
// alone would be those of other clients, too. Later ones close its connection.
type calls struct {
	mu      sync.Mutex
	running map[callKey]context.CancelFunc
}

type callKey struct{ session, id string }

// add notes a call, until the function that it returns is called.
func (c *calls) add(session string, id jsontext.Value, cancel context.CancelFunc) (remove func()) {
	if session == "" || len(id) == 0 {
		return func() {}
	}
	key := callKey{session, string(id)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[callKey]context.CancelFunc{}
	}
	if _, taken := c.running[key]; taken {
		return func() {}
	}
	c.running[key] = cancel
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, key)
	}
}

func (c *calls) cancel(session string, id jsontext.Value) {
	if session == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[callKey{session, string(id)}]; cancel != nil {
		cancel()
	}
}

// exchange is the HTTP request of a call. Over stdio there is none, it is then nil.
type exchange struct {
	ctx context.Context
	w   *writer
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// join returns ctx ended by the exchange's end, too: for older revisions the
// protocol's library does not see to that.
func (x *exchange) join(ctx context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	if x == nil {
		return joined, func() { cancel(nil) }
	}
	stop := context.AfterFunc(x.ctx, func() { cancel(context.Cause(x.ctx)) })
	return joined, func() {
		stop()
		cancel(nil)
	}
}

// ping sends a comment, which clients pass over.
func (x *exchange) ping() {
	if x != nil {
		_, _ = x.w.Write([]byte(": ping\n\n"))
		x.w.Flush()
	}
}

// writer keeps comments out of events, each of which is one Write.
type writer struct {
	http.ResponseWriter
	mu sync.Mutex
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return http.NewResponseController(w.ResponseWriter).Flush()
}
