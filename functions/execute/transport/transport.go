// Package transport is how the world reaches execute over HTTP: as JSON, as a
// stream of server-sent events, and as CloudEvents. It translates to
// execute.Executor and back, and knows nothing of sandboxes.
//
//	POST /v1/sandbox/execute   a Request as JSON, a Result or a stream back
//	POST /                     the same as an event, or as plain JSON
//	GET  /v1/languages, /v1/limits, /v1/pools
//	GET  /healthz, /readyz, /metrics
package transport

import (
	"net/http"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/server"
)

// Transport serves one executor.
type Transport struct {
	executor *execute.Executor
	pool     pool.Pool
	metrics  http.Handler
	source   string
	// deliveries are the events that have been or are being answered.
	deliveries *deliveries
	record     Record
	eventBytes int
	sink       Sink
	// running are executions whose streams may have ended before them.
	running sync.WaitGroup
}

// Options is what New takes.
type Options struct {
	Executor *execute.Executor
	Pool     pool.Pool
	Gatherer prometheus.Gatherer
	// EventSource is the source attribute of completed events.
	EventSource string
	// Record, if not nil, knows of events that other replicas answer.
	Record Record
	// EventBytes bounds a completed event, except where it is delivered
	// directly; 0 does not.
	EventBytes int
	// Sink, if not nil, gets each completed event, too, and one for each
	// event that was answered with a stream.
	Sink Sink
}

// New returns a transport, which serves once it is registered.
func New(o Options) *Transport {
	return &Transport{
		executor: o.Executor, pool: o.Pool, source: o.EventSource, deliveries: newDeliveries(),
		record: o.Record, eventBytes: o.EventBytes, sink: o.Sink,
		metrics: promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{}),
	}
}

// MaxBody is the largest body that a route takes, in bytes: an event whose data
// is a request, in base64 and with its attributes. What a request itself may
// have is checked once it is decoded.
func MaxBody(l execution.ServerLimits) int { return int(2*l.BodyBytes) + 2*maxAttributes }

// Wait returns when no execution is left that a request began. The server has
// ended by then.
func (t *Transport) Wait() { t.running.Wait() }

// RegisterExecute adds the route that takes plain requests.
func (t *Transport) RegisterExecute(r fiber.Router) {
	r.Post("/v1/sandbox/execute", t.executeJSON)
}

// Register adds all other routes.
func (t *Transport) Register(r fiber.Router) {
	r.Post("/", t.executeEvent)
	r.Get("/v1/languages", t.languages)
	r.Get("/v1/limits", t.limits)
	r.Get("/v1/pools", t.pools)
	r.Get("/healthz", healthy)
	r.Get("/readyz", t.ready)
	r.Get("/metrics", server.HTTPHandler(t.metrics))
}

func (t *Transport) languages(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(fiber.Map{"languages": t.executor.Languages()})
}

func (t *Transport) limits(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(t.executor.Limits())
}

func healthy(c *fiber.Ctx) error { return c.JSON(fiber.Map{"status": "ok"}) }

func (t *Transport) ready(c *fiber.Ctx) error {
	if err := t.pool.Ready(); err != nil {
		return execution.NewProblem(execution.ProblemNotReady, "%s.", err)
	}
	return c.JSON(fiber.Map{"status": "ready"})
}
