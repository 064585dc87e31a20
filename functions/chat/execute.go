package chat

import (
	"context"
	"fmt"
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
	"github.com/preheat-dev/preheat/functions/chat/relay"
	"github.com/preheat-dev/preheat/internal/server"
)

// forwardExecute answers POST /v1/sandbox/execute: the request goes to execute
// as an event, and execute's answer to it comes back as it is.
func (c *Chat) forwardExecute(f *fiber.Ctx) error {
	if err := server.RequireJSON(f); err != nil {
		return err
	}
	limits := execution.DefaultLimits() // of execute: nothing configures its body_bytes
	body, err := server.BodyWithin(f, limits.BodyBytes, limits.BodyTooLarge())
	if err != nil {
		return err
	}
	if jsontext.Value(body).Kind() != '{' {
		// As data of an event execute takes more than an object.
		_, problem := execution.Decode(body)
		return problem
	}
	stream := server.WantsEvents(f)
	if stream && server.Resumes(f) {
		return server.NothingToResume(f)
	}
	w := relay.NewWatchdog(server.Context(f))
	res, err := c.deadline.Await(w, func() (*http.Response, error) { return c.request(w.Context(), f, body, stream) })
	if err != nil {
		defer w.Stop()
		return c.notExecuted(f, w.Explain(err))
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	if stream && res.StatusCode == http.StatusOK && media == execution.MediaSSE {
		return relay.Execution(f, w, res)
	}
	defer w.Stop()
	defer res.Body.Close()
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		refusal, err := w.ReadAll(res.Body, relay.Silence, c.config.RefusalLimit)
		if err != nil {
			return c.notExecuted(f, err)
		}
		return relay.Refusal(f, res, media, refusal)
	case stream:
		return unexpected("it did not answer with a stream")
	case res.StatusCode != http.StatusOK || media != execution.MediaJSON || res.Header.Get("Ce-Type") != execution.TypeCompleted:
		return unexpected("it did not answer with a completed event")
	}
	f.Set(fiber.HeaderCacheControl, "no-store")
	if err := relay.Body(f, w, res, fiber.MIMEApplicationJSON, relay.Silence); err != nil {
		return c.notExecuted(f, err)
	}
	return nil
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
	relay.SetTraceHeaders(f, req)
	relay.SetHeaders(f, req, execution.HeaderIdempotencyKey)
	req.Header.Set(execution.HeaderDelivery, execution.DeliveryDirect)
	if stream {
		req.Header.Set(fiber.HeaderAccept, execution.MediaSSE)
	}
	return c.execute.Do(req)
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
		otelhttp.WithFilter(func(r *http.Request) bool {
			// A span has the URL, and that of a session its id, which is a secret.
			return r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/v1/sessions")
		}))
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

func unexpected(why string) error {
	return execution.NewProblem(execution.ProblemUpstream, "The execute function's answer is not of the right kind: %s.", why)
}

// notExecuted is the answer when execute gave none.
func (c *Chat) notExecuted(f *fiber.Ctx, err error) error {
	if relay.IsCallers(err) {
		return err
	}
	server.Logger(server.Context(f)).Warn("the execute function did not answer", "error", relay.Redact(err))
	return relay.ExecutionProblem(err)
}
