// Package chat is the function that people and agents talk to. It answers
//
//	POST /v1/chat/completions, GET /v1/models, GET /v1/models/{id}
//	    in OpenAI's shape, from a language model behind it; bytes pass
//	    through, errors keep their status and are never sent as text of
//	    the assistant
//	/v1/*
//	    where nothing else answers, from that model server, if there is one
//	GET /v1/chat/status
//	    which model that is
//	POST /v1/sandbox/execute
//	    by sending execute a CloudEvent and giving back its result
//	/v1/sessions
//	    by passing requests and files on to execute as they come
//	GET /v1/services
//	    how the platform's own Knative Services stand
//	GET /
//	    the page
//
// and on a cluster passes execute's read-only resources on. A chat that is set
// in front of another one serves the page and passes everything else on. When the client
// goes away, what was asked of the model and of execute is cancelled at once.
// A stream that broke off is never made to look complete.
package chat

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/functions/chat/page"
	"github.com/preheat-dev/preheat/functions/chat/proxy"
	"github.com/preheat-dev/preheat/functions/chat/relay"
)

// Options is what New takes.
type Options struct {
	Config Config
	// Page is the built page, with index.html at its root; nil when there
	// is none.
	Page fs.FS
	// Forward passes /v1/sessions, /v1/languages, /v1/limits and /v1/pools on to
	// execute. It is off where execute serves them itself on the same app.
	Forward bool
	// Services lists the platform's Knative Services; nil where there are none.
	Services ServiceLister
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
	// Local lists base URLs of model servers to look for; nil means
	// LocalServers.
	Local []string
}

// Chat is the function.
type Chat struct {
	config   Config
	log      *slog.Logger
	page     *page.Page
	metrics  *relay.Metrics
	forwards bool

	services ServiceLister

	// target is the model server in use; nil: the demo model answers.
	target   atomic.Pointer[target]
	local    []*url.URL
	instance relay.Instance
	llm      *http.Client
	execute  *http.Client
	// deadline is that of executions.
	deadline *relay.Deadline
	sessions *relay.Sessions
	// proxy, if not nil, has all the rest answered by another chat.
	proxy *proxy.Proxy
}

// New returns the function, which serves once it is registered.
func New(o Options) (*Chat, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	c := &Chat{config: o.Config, log: o.Logger, forwards: o.Forward, services: o.Services, instance: relay.NewInstance(), metrics: relay.NewMetrics(o.Registerer)}
	if c.log == nil {
		c.log = slog.Default()
	}
	var err error
	if c.page, err = page.New(o.Page); err != nil {
		return nil, err
	}
	if c.config.ChatURL == "" {
		if err := c.targets(o.Local); err != nil {
			return nil, err
		}
	}
	// Execute is a neighbour: no proxy of the environment is on the way.
	c.llm, c.execute = newClient(http.ProxyFromEnvironment), newClient(nil)
	uploads := relay.NewUploads(c.execute.Transport.(*http.Transport))
	c.execute.Transport = traced(c.execute.Transport)
	c.deadline = &relay.Deadline{
		Client: c.execute, URL: cmp.Or(c.config.ChatURL, c.config.ExecuteURL), Timeout: c.config.ExecuteTimeout, Log: c.log,
	}
	c.sessions = &relay.Sessions{
		URL: c.deadline.URL, Client: c.execute, Uploads: uploads, Deadline: c.deadline, RefusalLimit: c.config.RefusalLimit,
	}
	if c.config.ChatURL != "" {
		c.proxy = proxy.New(proxy.Config{
			URL: c.config.ChatURL, Client: c.execute, Sessions: *c.sessions, Instance: c.instance, Deadline: c.deadline, Metrics: c.metrics,
			FirstByteTimeout: c.config.LLM.FirstByteTimeout, IdleTimeout: c.config.LLM.IdleTimeout, RefusalLimit: c.config.RefusalLimit,
		})
	}
	return c, nil
}

// Register adds chat's routes to r.
func (c *Chat) Register(r fiber.Router) {
	if c.proxy != nil {
		c.proxy.Register(r)
		c.page.Register(r)
		return
	}
	r.Post("/v1/chat/completions", c.completions)
	r.Get("/v1/models", c.models)
	r.Get("/v1/models/*", c.modelByID)
	r.Get("/v1/chat/status", c.status)
	r.Get("/v1/services", c.listServices)
	r.Post("/v1/sandbox/execute", c.forwardExecute)
	if c.forwards {
		c.sessions.Register(r)
		for _, path := range []string{"/v1/languages", "/v1/limits", "/v1/pools"} {
			r.Get(path, c.forwardRead)
		}
	}
	c.page.Register(r)
	r.Use("/v1", c.passThrough)
}

// Executions returns a client that runs programs, and no more, where this function has them
// run, with its deadlines.
func (c *Chat) Executions() (*client.Client, error) {
	web := *c.execute
	// On one machine the other path is this function's own, and leads to execute's
	// root after a detour.
	web.Transport = &relay.Transport{Base: c.execute.Transport, Deadline: c.deadline, Root: c.proxy == nil}
	return client.New(c.deadline.URL, &web)
}

// Run looks for model servers until ctx ends.
func (c *Chat) Run(ctx context.Context) error {
	defer c.llm.CloseIdleConnections()
	defer c.execute.CloseIdleConnections()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		c.probe(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// newClient returns a client that leaves time limits to contexts.
func newClient(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = proxy
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
	t.DisableCompression = true
	t.ResponseHeaderTimeout = 0
	return &http.Client{
		Transport: t,
		// A redirect would take the key, or the code, somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
