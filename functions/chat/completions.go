package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/openai"
	"github.com/preheat-dev/preheat/functions/chat/relay"
	"github.com/preheat-dev/preheat/internal/server"
)

// answerLimit bounds a model server's answer that is not streamed.
const answerLimit = 64 << 20

// completions answers POST /v1/chat/completions.
func (c *Chat) completions(f *fiber.Ctx) error {
	if err := server.RequireJSON(f); err != nil {
		return openai.NewError(http.StatusUnsupportedMediaType, openai.TypeInvalidRequest, "unsupported_media_type", err.Error()).Send(f)
	}
	if e := c.instance.Loop(f); e != nil {
		return e.Send(f)
	}
	body, err := server.Body(f)
	if err != nil {
		return err
	}
	req, err := parseCompletion(body)
	if err != nil {
		return openai.InvalidRequest("invalid_request", err.Error()).Send(f)
	}
	t := c.target.Load()
	if t == nil {
		return c.demoCompletion(f, req)
	}
	return c.forward(f, t, modelRequest{
		method: http.MethodPost, path: "chat/completions", body: req.withModel(t.model), stream: req.stream,
	})
}

// modelRequest is a request for a model server.
type modelRequest struct {
	method, path string
	// query is what stands behind the path's question mark.
	query  string
	body   []byte
	stream bool
}

// forward sends r to t and answers f with what comes back.
func (c *Chat) forward(f *fiber.Ctx, t *target, r modelRequest) error {
	x, err := c.begin(f, t, r)
	if x == nil {
		return err
	}
	relay.CopyModelHeaders(f, x.Header)
	if r.stream && x.streams() {
		return relay.Completions(f, x.watchdog, x.Response, c.config.LLM.IdleTimeout, x.seen)
	}
	defer x.end()
	body, err := x.read(c.config.LLM.IdleTimeout)
	if err != nil {
		return c.unanswered(f, x.seen, err)
	}
	if x.media != execution.MediaJSON || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return errNotOpenAI(x.StatusCode, body).Send(f)
	}
	f.Status(x.StatusCode).Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return f.Send(body)
}

// exchange is a request to a model server whose response has begun.
type exchange struct {
	*http.Response
	media    string
	watchdog *relay.Watchdog
	seen     *relay.Observation
}

// begin sends r to t. It returns no exchange when the model server gives no
// response: then f is answered, and the error is the handler's.
func (c *Chat) begin(f *fiber.Ctx, t *target, r modelRequest) (*exchange, error) {
	x := &exchange{seen: c.metrics.Begin(t.source), watchdog: relay.NewWatchdog(server.Context(f))}
	x.watchdog.Expect(c.config.LLM.FirstByteTimeout)
	var err error
	if x.Response, err = c.ask(x.watchdog.Context(), f, t, r); err != nil {
		defer x.watchdog.Stop()
		return nil, c.unanswered(f, x.seen, x.watchdog.Explain(err))
	}
	x.media, _, _ = mime.ParseMediaType(x.Header.Get(fiber.HeaderContentType))
	return x, nil
}

func (x *exchange) streams() bool {
	return x.StatusCode == http.StatusOK && x.media == execution.MediaSSE
}

// read returns the whole body, whose pieces must come within idle.
func (x *exchange) read(idle time.Duration) ([]byte, error) {
	body, err := x.watchdog.ReadAll(x.Body, idle, answerLimit)
	if err == nil {
		x.seen.FirstByte()
		x.seen.End(relay.OutcomeOf(x.StatusCode))
	}
	return body, err
}

// end ends an exchange that is not passed on as a stream.
func (x *exchange) end() {
	_ = x.Body.Close()
	x.watchdog.Stop()
}

// ask sends r, and returns the response once its header is there.
func (c *Chat) ask(ctx context.Context, f *fiber.Ctx, t *target, r modelRequest) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, t.url(r.path, r.query), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	relay.SetHeaders(f, req, append(relay.OpenAIHeaders(), fiber.HeaderContentType, fiber.HeaderContentEncoding, fiber.HeaderAccept)...)
	relay.SetTraceHeaders(f, req)
	c.instance.SetVia(f, req)
	c.authorize(req, f.Get(fiber.HeaderAuthorization))
	return c.llm.Do(req)
}

// authorize puts the configured key on a request for the configured model
// server, or the client's own authorization where that is configured. A server
// that was only found on this machine gets neither: it may be any program's.
func (c *Chat) authorize(req *http.Request, fromClient string) {
	switch llm := c.config.LLM; {
	case llm.URL == "":
	case llm.APIKey != "":
		req.Header.Set(fiber.HeaderAuthorization, "Bearer "+string(llm.APIKey))
	case llm.ForwardAuthorization && fromClient != "":
		req.Header.Set(fiber.HeaderAuthorization, fromClient)
	}
}

// unanswered answers a request to which the model server gave no answer.
func (c *Chat) unanswered(f *fiber.Ctx, seen *relay.Observation, err error) error {
	switch {
	case relay.IsCallers(err):
		seen.End(relay.OutcomeCancelled)
		return err
	case errors.Is(err, relay.ErrTimeout):
		seen.End(relay.OutcomeTimeout)
	default:
		seen.End(relay.OutcomeUnreachable)
	}
	server.Logger(server.Context(f)).Warn("the model server did not answer", "error", relay.Redact(err))
	return relay.UpstreamError(err).Send(f)
}

// errNotOpenAI is the answer to one that is not in OpenAI's shape, such as a
// proxy's page. An error keeps its status.
func errNotOpenAI(status int, body []byte) *openai.Error {
	if status < http.StatusBadRequest {
		return openai.NewError(http.StatusBadGateway, openai.TypeUpstream, "upstream_invalid",
			fmt.Sprintf("The model server answered with status %d and something that is not JSON. Is its URL right?", status))
	}
	const quote = 500
	text := strings.ToValidUTF8(string(body[:min(len(body), quote)]), "\uFFFD")
	return openai.NewError(status, openai.TypeUpstream, "upstream_error", fmt.Sprintf("The model server answered with status %d: %s", status, text))
}
