package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

const (
	// headerVia lists the instances of Preheat that a request to a model
	// server has passed.
	headerVia = "X-Preheat-Via"

	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"

	// answerLimit bounds a model server's answer that is not streamed.
	answerLimit = 64 << 20
)

// completions answers POST /v1/chat/completions.
func (c *Chat) completions(f *fiber.Ctx) error {
	if err := server.RequireJSON(f); err != nil {
		return newAPIError(http.StatusUnsupportedMediaType, typeInvalidRequest, "unsupported_media_type", err.Error()).send(f)
	}
	if e := c.loop(f); e != nil {
		return e.send(f)
	}
	body, err := server.Body(f)
	if err != nil {
		return err
	}
	req, err := parseCompletion(body)
	if err != nil {
		return invalidRequest("invalid_request", err.Error()).send(f)
	}
	t := c.target.Load()
	if t == nil {
		return c.demoCompletion(f, req)
	}
	return c.relay(f, t, relayed{
		method: http.MethodPost, path: "chat/completions", body: req.withModel(t.model), stream: req.stream,
	})
}

// models answers GET /v1/models.
func (c *Chat) models(f *fiber.Ctx) error {
	if e := c.loop(f); e != nil {
		return e.send(f)
	}
	t := c.target.Load()
	if t == nil {
		return c.demoModels(f)
	}
	return c.relay(f, t, relayed{method: http.MethodGet, path: "models"})
}

// loop returns an error for a request that this instance itself has sent.
func (c *Chat) loop(f *fiber.Ctx) *apiError {
	if strings.Contains(f.Get(headerVia), c.instance) {
		return newAPIError(http.StatusLoopDetected, typeServer, "loop_detected", "The model server's URL leads back to this server.")
	}
	return nil
}

// relayed is a request for a model server.
type relayed struct {
	method, path string
	body         []byte
	stream       bool
}

// relay sends r to t and answers f with what comes back.
func (c *Chat) relay(f *fiber.Ctx, t *target, r relayed) error {
	seen := c.metrics.begin(t.source)
	w := newWatchdog(server.Context(f))
	w.expect(c.config.LLM.FirstByteTimeout)
	res, err := c.ask(w.ctx, f, t, r)
	if err != nil {
		defer w.stop()
		return c.unanswered(f, seen, w.explain(err))
	}
	copyHeaders(f, res.Header)
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	if r.stream && res.StatusCode == http.StatusOK && media == execution.MediaSSE {
		return c.relayStream(f, w, res, seen)
	}
	defer w.stop()
	defer res.Body.Close()
	body, err := readAll(w.reader(res.Body, c.config.LLM.IdleTimeout), answerLimit)
	if err != nil {
		return c.unanswered(f, seen, err)
	}
	seen.firstByte()
	seen.end(outcomeOf(res.StatusCode))
	if media != execution.MediaJSON || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return notAnAPI(res.StatusCode, body).send(f)
	}
	f.Status(res.StatusCode).Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return f.Send(body)
}

// ask sends r, and returns the response once its header is there.
func (c *Chat) ask(ctx context.Context, f *fiber.Ctx, t *target, r relayed) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, t.url(r.path), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{
		fiber.HeaderContentType, fiber.HeaderAccept, headerTraceParent, headerTraceState, "OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project",
	} {
		if v := f.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	req.Header.Set(server.HeaderRequestID, server.RequestID(f))
	via := c.instance
	if before := f.Get(headerVia); before != "" {
		via = before + ", " + via
	}
	req.Header.Set(headerVia, via)
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
func (c *Chat) unanswered(f *fiber.Ctx, seen *observation, err error) error {
	switch {
	case errors.Is(err, server.ErrPeerGone), errors.Is(err, server.ErrShutdown):
		seen.end(outcomeCancelled)
		return err
	case errors.Is(err, errTimeout):
		seen.end(outcomeTimeout)
	default:
		seen.end(outcomeUnreachable)
	}
	server.Logger(server.Context(f)).Warn("the model server did not answer", "error", redact(err))
	return upstreamError(err).send(f)
}

// upstreamError says why the model server's answer is missing or broken.
func upstreamError(err error) *apiError {
	switch {
	case errors.Is(err, errTimeout):
		return newAPIError(http.StatusGatewayTimeout, typeUpstream, "upstream_timeout", "The model server did not answer in time.")
	case errors.Is(err, errTooLarge):
		return newAPIError(http.StatusBadGateway, typeUpstream, "upstream_too_large", "The model server's answer is too large.")
	case errors.Is(err, server.ErrShutdown):
		return newAPIError(http.StatusServiceUnavailable, typeServer, "shutting_down", "The server is shutting down.")
	case errors.Is(err, errCut):
		return newAPIError(http.StatusBadGateway, typeUpstream, "upstream_cut", "The model server's answer broke off.")
	}
	return newAPIError(http.StatusBadGateway, typeUpstream, "upstream_unreachable", "The model server cannot be reached.")
}

// notAnAPI is the answer to one that is not in OpenAI's shape, such as a
// proxy's page. An error keeps its status.
func notAnAPI(status int, body []byte) *apiError {
	if status < http.StatusBadRequest {
		return newAPIError(http.StatusBadGateway, typeUpstream, "upstream_invalid",
			fmt.Sprintf("The model server answered with status %d and something that is not JSON. Is its URL right?", status))
	}
	const quote = 500
	text := strings.ToValidUTF8(string(body[:min(len(body), quote)]), "\uFFFD")
	return newAPIError(status, typeUpstream, "upstream_error", fmt.Sprintf("The model server answered with status %d: %s", status, text))
}

// copyHeaders gives the client those of the model server's headers that speak
// of limits and of the model.
func copyHeaders(f *fiber.Ctx, h http.Header) {
	for name, values := range h {
		lower := strings.ToLower(name)
		switch {
		case lower == "retry-after", lower == "retry-after-ms", strings.HasPrefix(lower, "x-ratelimit-"), strings.HasPrefix(lower, "openai-"):
			f.Set(name, values[0])
		case lower == "x-request-id":
			f.Set("X-Upstream-Request-Id", values[0])
		}
	}
}

// errTooLarge: an answer exceeds its limit.
var errTooLarge = errors.New("the answer is too large")

func readAll(r io.Reader, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = errTooLarge
	}
	return body, err
}

// outcomeOf names a status for the metrics.
func outcomeOf(status int) string { return fmt.Sprintf("%dxx", status/100) }

// since is a duration in seconds.
func since(t time.Time) float64 { return time.Since(t).Seconds() }
