// Package proxy serves the interface below /v1 by another chat function, with the
// same truth about what broke off on the way.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/relay"
	"github.com/preheat-dev/preheat/internal/server"
)

// sourceChat marks requests that another chat answers, in the metrics.
const sourceChat = "chat"

// Config is what New takes.
type Config struct {
	// URL is the base URL of the other chat.
	URL string
	// Client leaves time limits to contexts.
	Client   *http.Client
	Instance relay.Instance
	// Sessions is for the requests about sessions.
	Sessions relay.Sessions
	// Deadline is that of executions.
	Deadline *relay.Deadline
	Metrics  *relay.Metrics
	// FirstByteTimeout bounds the wait for a model's first byte, IdleTimeout
	// that between two pieces of its answer.
	FirstByteTimeout, IdleTimeout time.Duration
	// RefusalLimit bounds what may be said of a request that is refused, in
	// bytes.
	RefusalLimit int64
}

// Proxy has requests answered by another chat.
type Proxy struct{ config Config }

// New returns a proxy, which serves once it is registered.
func New(c Config) *Proxy { return &Proxy{config: c} }

// Register adds the proxy's routes to r.
func (p *Proxy) Register(r fiber.Router) {
	r.Use("/v1/sessions", p.withoutLoop)
	sessions := p.config.Sessions
	sessions.Prepare = func(f *fiber.Ctx, req *http.Request) {
		relay.SetHeaders(f, req, fiber.HeaderAuthorization)
		p.config.Instance.SetVia(f, req)
	}
	sessions.Register(r)
	r.All("/v1/*", p.serve)
}

// withoutLoop refuses what this process has sent itself.
func (p *Proxy) withoutLoop(f *fiber.Ctx) error {
	if e := p.config.Instance.Loop(f); e != nil {
		return e.Send(f)
	}
	return f.Next()
}

// serve gives a request to the other chat as it came, and its answer back.
// Streams go through the same relays as those of execute and of models.
func (p *Proxy) serve(f *fiber.Ctx) error {
	if e := p.config.Instance.Loop(f); e != nil {
		return e.Send(f)
	}
	if !relay.IsAPI(f.Path()) {
		return execution.NewProblem(execution.ProblemNotFound, "There is nothing at this path.")
	}
	chat := strings.HasPrefix(f.Path(), "/v1/chat/completions")
	request, err := server.Body(f)
	if err != nil {
		return err
	}
	w := relay.NewWatchdog(server.Context(f))
	ask := func() (*http.Response, error) { return p.send(w.Context(), f, request) }
	var res *http.Response
	if chat {
		w.Expect(p.config.FirstByteTimeout)
		res, err = ask()
	} else {
		res, err = p.config.Deadline.Await(w, ask)
	}
	if err != nil {
		defer w.Stop()
		return unanswered(f, chat, w.Explain(err))
	}
	if chat {
		relay.CopyModelHeaders(f, res.Header)
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	if res.StatusCode == http.StatusOK && media == execution.MediaSSE {
		switch {
		case chat:
			return relay.Completions(f, w, res, p.config.IdleTimeout, p.config.Metrics.Begin(sourceChat))
		case f.Method() == fiber.MethodPost:
			return relay.Execution(f, w, res)
		}
		return relay.Events(f, w, res)
	}
	defer w.Stop()
	defer res.Body.Close()
	if res.StatusCode >= http.StatusMultipleChoices && media != execution.MediaJSON && media != execution.MediaProblem {
		// Of what stands between, such as a proxy.
		body, err := w.ReadAll(res.Body, relay.Silence, p.config.RefusalLimit)
		if err != nil {
			return unanswered(f, chat, err)
		}
		return relay.Refusal(f, res, media, body)
	}
	for _, name := range []string{fiber.HeaderCacheControl, fiber.HeaderAllow, fiber.HeaderRetryAfter} {
		if v := res.Header.Get(name); v != "" {
			f.Set(name, v)
		}
	}
	f.Status(res.StatusCode)
	if err := relay.Body(f, w, res, res.Header.Get(fiber.HeaderContentType), relay.Silence); err != nil {
		return unanswered(f, chat, err)
	}
	return nil
}

// send sends f's request on, and returns the response once its header is
// there.
func (p *Proxy) send(ctx context.Context, f *fiber.Ctx, body []byte) (*http.Response, error) {
	target := strings.TrimSuffix(p.config.URL, "/") + f.OriginalURL()
	req, err := http.NewRequestWithContext(ctx, f.Method(), target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	relay.SetHeaders(f, req, append(relay.OpenAIHeaders(),
		fiber.HeaderContentType, fiber.HeaderContentEncoding, fiber.HeaderAccept, fiber.HeaderAuthorization,
		execution.HeaderIdempotencyKey, execution.HeaderLastEventID)...)
	p.config.Instance.SetVia(f, req)
	relay.SetTraceHeaders(f, req)
	return p.config.Client.Do(req)
}

// unanswered is the answer where the other chat gave none.
func unanswered(f *fiber.Ctx, chat bool, err error) error {
	if relay.IsCallers(err) {
		return err
	}
	server.Logger(server.Context(f)).Warn("the chat function did not answer", "error", relay.Redact(err))
	if chat {
		return relay.UpstreamError(err).Send(f)
	}
	switch {
	case errors.Is(err, relay.ErrTimeout):
		return execution.NewProblem(execution.ProblemDeadline, "The chat function did not answer in time.")
	case relay.IsTooLarge(err):
		return execution.NewProblem(execution.ProblemUpstream, "The chat function's answer is too large.")
	}
	return execution.NewProblem(execution.ProblemUpstream, "The chat function cannot be reached.")
}
