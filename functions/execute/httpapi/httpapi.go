// Package httpapi serves execute over HTTP, and answers requests as JSON and as
// streams of server-sent events. It translates to execute.Executor and back, and knows
// nothing of sandboxes.
//
//	/v1/sessions               sandboxes that stay for several runs
//	GET  /v1/languages, /v1/limits, /v1/pools
//	GET  /healthz, /readyz, /metrics
//
// Other protocols that come over HTTP share its methods.
package httpapi

import (
	"net/http"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/internal/server"
)

// Pools is the state of the pools that execute has its sandboxes from.
type Pools interface {
	// Status lists the pools and their sandboxes.
	Status() []execution.PoolStatus
	// Changed returns a channel that is closed when Status next changes.
	Changed() <-chan struct{}
	// Ready returns nil when there can be sandboxes.
	Ready() error
}

// API serves one executor.
type API struct {
	executor *execute.Executor
	pools    Pools
	metrics  http.Handler
	// running are executions whose streams may have ended before them.
	running sync.WaitGroup
}

// New returns an API, which serves once it is registered.
func New(executor *execute.Executor, pools Pools, metrics prometheus.Gatherer) *API {
	return &API{executor: executor, pools: pools, metrics: promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})}
}

// Wait returns when no execution is left that a request began. The server has
// ended by then.
func (a *API) Wait() { a.running.Wait() }

// Register adds the routes, but for the one that takes requests.
func (a *API) Register(r fiber.Router) {
	a.registerSessions(r)
	r.Get("/v1/languages", a.getLanguages)
	r.Get("/v1/limits", a.getLimits)
	r.Get("/v1/pools", a.getPools)
	r.Get("/healthz", healthy)
	r.Get("/readyz", a.ready)
	r.Get("/metrics", server.HTTPHandler(a.metrics))
}

func (a *API) getLanguages(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(fiber.Map{"languages": a.executor.Languages()})
}

func (a *API) getLimits(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(a.executor.Limits())
}

func healthy(c *fiber.Ctx) error { return c.JSON(fiber.Map{"status": "ok"}) }

func (a *API) ready(c *fiber.Ctx) error {
	if err := a.pools.Ready(); err != nil {
		return execution.NewProblem(execution.ProblemNotReady, "%s.", err)
	}
	return c.JSON(fiber.Map{"status": "ready"})
}
