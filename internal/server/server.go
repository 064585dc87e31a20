// Package server is the HTTP server that the functions share: net/http, with
// fiber as its router. What
// it promises to every handler registered on its App:
//
//   - Context ends when the client's connection closes or is reset, when the
//     server is cut at shutdown, and when the exchange is over; its cause says
//     which (ErrPeerGone, ErrShutdown, ErrDone).
//   - A returned error becomes a problem document: an *execution.Problem as
//     it is, a *fiber.Error by its code, anything else as status 500 without
//     its text. A panic is logged and answered the same way.
//   - Requests from other origins and for foreign hosts do not get through.
//   - What a handler takes by budget.Take(Context) is given back when the
//     exchange is over.
//   - A request that another server could read otherwise is refused before it
//     is parsed, and its connection closed.
//   - A body is read when a handler asks for it, and not before.
//   - Bodies, headers and the time to send them are bounded; a client that
//     stops reading is cut after WriteTimeout, however long a stream lives.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/preheat-dev/preheat/internal/budget"
)

// Causes with which a request's context ends.
var (
	// ErrPeerGone: the client closed or reset its connection, or stopped
	// reading.
	ErrPeerGone = errors.New("the client is gone")
	// ErrShutdown: the server's grace period is over.
	ErrShutdown = errors.New("the server is shutting down")
	// ErrDone: the response is complete.
	ErrDone = errors.New("the exchange is complete")
)

// Config is how a server behaves. The zero value serves loopback hosts with
// the defaults named at each field.
type Config struct {
	// Logger takes access and error logs; slog.Default() when nil.
	Logger *slog.Logger
	// BodyLimit bounds a request's body in bytes; 4 MiB.
	BodyLimit int
	// Connections bounds the open connections; 4096. Others are answered with
	// a problem (503).
	Connections int
	// HeaderTimeout bounds the time for a request's header, 10 s, and
	// BodyTimeout the time for its body after that, 30 s.
	HeaderTimeout time.Duration
	BodyTimeout   time.Duration
	// IdleTimeout is how long a kept-alive connection may rest; 120 s. Proxies
	// of Go's net/http, Knative's queue-proxy among them, drop theirs after
	// 90 s: a server that closes first loses the request that is on its way.
	IdleTimeout time.Duration
	// WriteTimeout bounds the write of a plain response and of each piece of
	// a streamed one; 30 s.
	WriteTimeout time.Duration
	// PingInterval is the longest silence on an event stream; 8 s.
	PingInterval time.Duration
	// Linger is how long after the context's end requests are still taken,
	// whose connections end with them; none by default. Where a balancer
	// learns of the end at the same time, its last requests come then.
	Linger time.Duration
	// Grace is how long requests in flight may go on after shutdown began;
	// 10 s. What is left then is cut.
	Grace time.Duration
	// AllowedHosts lists what a request's Host may be, beside the loopback
	// names: a name without port stands for any port, "*" for any host.
	AllowedHosts []string
	// AllowedOrigins lists origins, beside the server's own, that may send
	// requests, such as "https://chat.example.com"; "*" stands for any.
	AllowedOrigins []string
	// Budget is what request bodies and whatever handlers take in the name of
	// an exchange come from; without one there is no bound.
	Budget *budget.Budget
	// Quiet lists paths whose requests are logged at debug level only.
	Quiet []string
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	setDefault(&c.BodyLimit, 4<<20)
	setDefault(&c.Connections, 4096)
	setDefault(&c.HeaderTimeout, 10*time.Second)
	setDefault(&c.BodyTimeout, 30*time.Second)
	setDefault(&c.IdleTimeout, 120*time.Second)
	setDefault(&c.WriteTimeout, 30*time.Second)
	setDefault(&c.PingInterval, 8*time.Second)
	setDefault(&c.Grace, 10*time.Second)
	return c
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Server serves one App on one listener.
type Server struct {
	config Config
	log    *slog.Logger
	app    *fiber.App
	guard  *guard
	conns  *conns
	web    *http.Server
	// routes is the app's handler, contexts are what it works on.
	routes   fasthttp.RequestHandler
	contexts sync.Pool

	// base is the parent of every request's context; cut ends it.
	base context.Context
	cut  context.CancelCauseFunc
	// leaving is closed when its context ends, draining when shutdown begins.
	leaving, draining chan struct{}
}

// New returns a server without routes. Its resources are released by Serve.
func New(config Config) (*Server, error) {
	config = config.withDefaults()
	g, err := newGuard(config.AllowedHosts, config.AllowedOrigins)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, log: config.Logger, guard: g, conns: newConns(config), leaving: make(chan struct{}), draining: make(chan struct{})}
	s.base, s.cut = context.WithCancelCause(context.Background())
	s.contexts.New = func() any { return new(fasthttp.RequestCtx) }
	s.app = fiber.New(fiber.Config{
		AppName:               "preheat",
		DisableStartupMessage: true,
		ErrorHandler: func(c *fiber.Ctx, err error) error {
			exchangeOf(c).err = err
			return nil
		},
		// Strings that handlers take from a request outlive it, in
		// streams and logs.
		Immutable: true,
	})
	s.web = &http.Server{
		Handler: s, ConnState: s.conns.state, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: config.HeaderTimeout, IdleTimeout: config.IdleTimeout, DisableGeneralOptionsHandler: true,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	return s, nil
}

// App is where the routes go, before Serve is called.
func (s *Server) App() *fiber.App { return s.app }
