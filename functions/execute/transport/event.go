package transport

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/format"
	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/ceheader"
	"github.com/preheat-dev/preheat/internal/server"
)

// executeEvent answers POST /: an event whose data is a request, of whatever
// type it is, or a request as plain JSON. An event is answered with a
// completed event, unless a stream was asked for.
func (t *Transport) executeEvent(c *fiber.Ctx) error {
	media, params, _ := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	structured := media == execution.MediaCloudEvent
	switch {
	case media == cloudevent.ApplicationCloudEventsBatchJSON:
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "Batches of events are not taken: send one event at a time.")
	case format.IsFormat(media) && !structured:
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "Events are taken in the JSON format only.")
	case structured && params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8"):
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "JSON must be in UTF-8, not in %.64q.", params["charset"])
	case !structured && !isEvent(c):
		if err := server.RequireJSON(c); err != nil {
			return err
		}
		body, err := server.Body(c)
		if err != nil {
			return err
		}
		return t.executeDocument(c, unquoted(body))
	}
	if coding := c.Get(fiber.HeaderContentEncoding); coding != "" && !strings.EqualFold(coding, "identity") {
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "The content coding %.64q is not supported: send the body as it is.", coding)
	}
	body, err := server.Body(c)
	if err != nil {
		return err
	}
	if limit := t.executor.Limits().BodyBytes; int64(len(body)) > 2*limit {
		// Base64 and the envelope have their room; the data is checked later.
		return execution.NewProblem(execution.ProblemTooLarge, "The event exceeds %d bytes.", 2*limit)
	}
	request, problem := readEvent(c, body, structured)
	if problem != nil {
		return problem
	}
	if request.Type() == execution.TypeCompleted {
		// One's own answer came back: nothing to do, and nothing to say that
		// could come back once more.
		c.Response().Header.SetNoDefaultContentType(true)
		c.Status(http.StatusAccepted)
		return nil
	}
	direct := request.Source() == t.direct
	p, problem := t.program(unquoted(request.Data()))
	if problem != nil {
		return refusal(problem, direct)
	}
	ctx, id := traced(server.Context(c), request), server.RequestID(c)
	if server.WantsEvents(c) {
		return t.stream(ctx, c, p, request)
	}
	x := &asked{event: request, program: p, id: id}
	var completed *cloudevent.Event
	if direct {
		completed, err = t.answer(ctx, x)
	} else {
		completed, err = t.deliveries.once(ctx, keyOf(request), func() (*cloudevent.Event, bool, error) { return t.answerOnce(ctx, x) })
	}
	if err != nil {
		return refusal(err, direct)
	}
	return sendEvent(c, completed, structured)
}

// refusal is the error that answers an event. What no later delivery can get
// right must not look as if it could: a broker tries 404 again.
func refusal(err error, direct bool) error {
	var problem *execution.Problem
	if direct || !asProblem(err, &problem) || problem.Status != http.StatusNotFound {
		return err
	}
	final := execution.NewProblem(execution.ProblemMalformed, "%s", problem.Detail)
	final.Field = problem.Field
	return final
}

// traced makes ctx a part of the trace that the event names in its extensions,
// unless the HTTP request has named it, which is nearer.
func traced(ctx context.Context, e *cloudevent.Event) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	for _, name := range (propagation.TraceContext{}).Fields() {
		if value, ok := e.Extensions()[name].(string); ok {
			carrier[name] = value
		}
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// unquoted is a request that a client may have encoded twice, as a string.
func unquoted(document []byte) []byte {
	if v := jsontext.Value(document); v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, bytes.TrimSpace(document)); err == nil {
			return text
		}
	}
	return document
}

// sendEvent sends an event in the mode of its request.
func sendEvent(c *fiber.Ctx, e *cloudevent.Event, structured bool) error {
	w := &responseWriter{header: http.Header{}}
	ctx := c.Context()
	mode := binding.WithForceBinary
	if structured {
		mode = binding.WithForceStructured
	}
	if err := cehttp.WriteResponseWriter(mode(ctx), (*binding.EventMessage)(e), http.StatusOK, w); err != nil {
		return fmt.Errorf("encoding the completed event: %w", err)
	}
	ceheader.EncodeAll(w.header)
	for name, values := range w.header {
		c.Set(name, values[0])
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(http.StatusOK).Send(w.body.Bytes())
}

// responseWriter takes what the SDK writes, for fiber to send.
type responseWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (w *responseWriter) Header() http.Header         { return w.header }
func (w *responseWriter) Write(p []byte) (int, error) { return w.body.Write(p) }
func (w *responseWriter) WriteHeader(int)             {}
