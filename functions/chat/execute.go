package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// silence is how long a stream of execute may say nothing, pings included.
const silence = 30 * time.Second

// forwardExecute answers POST /v1/sandbox/execute: the request goes to execute
// as an event, and execute's answer to it comes back as it is.
func (c *Chat) forwardExecute(f *fiber.Ctx) error {
	if err := server.RequireJSON(f); err != nil {
		return err
	}
	body, err := server.Body(f)
	if err != nil {
		return err
	}
	if jsontext.Value(body).Kind() != '{' {
		// As data of an event execute takes more than an object.
		_, problem := execution.Decode(body)
		return problem
	}
	stream := server.WantsEvents(f)
	w := newWatchdog(server.Context(f))
	res, err := c.awaitExecution(w, func() (*http.Response, error) { return c.request(w.ctx, f, body, stream) })
	if err != nil {
		defer w.stop()
		return c.notExecuted(f, w.explain(err))
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	if stream && res.StatusCode == http.StatusOK && media == execution.MediaSSE {
		return c.relayExecution(f, w, res)
	}
	defer w.stop()
	defer res.Body.Close()
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		refusal, err := readAll(w.reader(res.Body, silence), c.config.RefusalLimit)
		if err != nil {
			return c.notExecuted(f, err)
		}
		return refused(f, res, media, refusal)
	case stream:
		return unexpected("it did not answer with a stream")
	case res.StatusCode != http.StatusOK || media != execution.MediaJSON || res.Header.Get("Ce-Type") != execution.TypeCompleted:
		return unexpected("it did not answer with a completed event")
	}
	f.Set(fiber.HeaderCacheControl, "no-store")
	if err := forwardBody(f, w, res, fiber.MIMEApplicationJSON); err != nil {
		return c.notExecuted(f, err)
	}
	return nil
}

// forwardBody sends a body on while it comes. Whoever made it has bounded it;
// the largest legal result is far more than should be in memory here.
func forwardBody(f *fiber.Ctx, w *watchdog, res *http.Response, media string) error {
	return server.Encode(f, media, func(to io.Writer) error {
		if _, err := io.Copy(to, w.reader(res.Body, silence)); err != nil {
			return w.explain(err)
		}
		return nil
	})
}

// request sends the event and returns execute's response.
func (c *Chat) request(ctx context.Context, f *fiber.Ctx, body []byte, stream bool) (*http.Response, error) {
	e := cloudevent.New()
	e.SetID(eventID(f))
	e.SetSource(c.config.EventSource)
	e.SetType(execution.TypeRequested)
	e.SetTime(time.Now())
	if err := e.SetData(execution.MediaJSON, body); err != nil {
		return nil, fmt.Errorf("make the event: %w", err)
	}
	req, err := cehttp.NewHTTPRequestFromEvent(ctx, strings.TrimSuffix(c.config.ExecuteURL, "/")+"/", e)
	if err != nil {
		return nil, fmt.Errorf("encode the event: %w", err)
	}
	c.mark(f, req)
	req.Header.Set(execution.HeaderDelivery, execution.DeliveryDirect)
	if stream {
		req.Header.Set(fiber.HeaderAccept, execution.MediaSSE)
	}
	return c.execute.Do(req)
}

// mark gives a request to execute the identity of the client's.
func (c *Chat) mark(f *fiber.Ctx, req *http.Request) {
	req.Header.Set(server.HeaderRequestID, server.RequestID(f))
	for _, name := range []string{headerTraceParent, headerTraceState} {
		if v := f.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
}

// traced makes executions spans, of the trace of their request, where anybody
// asked for traces.
func traced(base http.RoundTripper) http.RoundTripper {
	if _, on := otel.GetTracerProvider().(*sdktrace.TracerProvider); !on {
		return base
	}
	// Without a provider of its own it would take that of the remote parent,
	// which records nothing.
	return otelhttp.NewTransport(base, otelhttp.WithTracerProvider(otel.GetTracerProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return r.Method == http.MethodPost }))
}

// eventID is the request's id where this server made it. An id that a client
// chose may come twice with different code, and execute would take the second
// event for a redelivery of the first.
func eventID(f *fiber.Ctx) string {
	id := server.RequestID(f)
	if id == "" || id == f.Get(server.HeaderRequestID) {
		return uuid.NewString()
	}
	return id
}

// refused passes an error of execute on, or makes one of what stands between.
func refused(f *fiber.Ctx, res *http.Response, media string, body []byte) error {
	retry := res.Header.Get(fiber.HeaderRetryAfter)
	if media == execution.MediaProblem && json.Valid(body) {
		if retry != "" {
			f.Set(fiber.HeaderRetryAfter, retry)
		}
		f.Set(fiber.HeaderCacheControl, "no-store")
		f.Status(res.StatusCode).Set(fiber.HeaderContentType, execution.MediaProblem)
		return f.Send(body)
	}
	kind := execution.ProblemUpstream
	switch res.StatusCode {
	case http.StatusTooManyRequests:
		kind = execution.ProblemNoSandbox
	case http.StatusServiceUnavailable:
		kind = execution.ProblemNotReady
	case http.StatusGatewayTimeout:
		kind = execution.ProblemDeadline
	}
	if retry != "" {
		f.Set(fiber.HeaderRetryAfter, retry)
	}
	return execution.NewProblem(kind, "The execute function answered with status %d.", res.StatusCode)
}

func unexpected(why string) error {
	return execution.NewProblem(execution.ProblemUpstream, "The execute function's answer is not of the right kind: %s.", why)
}

// notExecuted is the answer when execute gave none.
func (c *Chat) notExecuted(f *fiber.Ctx, err error) error {
	if errors.Is(err, server.ErrPeerGone) || errors.Is(err, server.ErrShutdown) {
		return err
	}
	server.Logger(server.Context(f)).Warn("the execute function did not answer", "error", redact(err))
	return executionProblem(err)
}

// executionProblem says why execute's answer is missing or broken.
func executionProblem(err error) *execution.Problem {
	switch {
	case errors.Is(err, errTimeout):
		return execution.NewProblem(execution.ProblemDeadline, "The execute function did not answer in time.")
	case errors.Is(err, errTooLarge):
		return execution.NewProblem(execution.ProblemUpstream, "The execute function's answer is too large.")
	case errors.Is(err, server.ErrShutdown):
		return execution.NewProblem(execution.ProblemNotReady, "The server is shutting down.")
	case errors.Is(err, errCut):
		return execution.NewProblem(execution.ProblemUpstream, "The execute function's stream broke off.")
	}
	return execution.NewProblem(execution.ProblemUpstream, "The execute function cannot be reached.")
}
