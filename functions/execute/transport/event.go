package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	if limit := MaxBody(t.executor.Limits()); len(body) > limit {
		return execution.NewProblem(execution.ProblemTooLarge, "The event exceeds %d bytes.", limit)
	}
	event, problem := readEvent(c, body, structured)
	if problem != nil {
		return problem
	}
	if event.Type() == execution.TypeCompleted {
		// A completed event was routed back. Acknowledge it without a body,
		// so that no loop forms.
		c.Response().Header.SetNoDefaultContentType(true)
		c.Status(http.StatusAccepted)
		return nil
	}
	// A header decides, no attribute: no broker passes it on.
	direct := strings.EqualFold(c.Get(execution.HeaderDelivery), execution.DeliveryDirect)
	p, problem := t.program(unquoted(event.Data()))
	if problem != nil {
		return refusal(problem, direct)
	}
	ctx, id := traced(server.Context(c), event), server.RequestID(c)
	if server.WantsEvents(c) {
		return t.stream(ctx, c, p, event)
	}
	x := &request{event: event, program: p, id: id}
	var a *answer
	if direct {
		a, err = t.answerDirect(ctx, x)
	} else {
		a, err = t.deliveries.once(ctx, keyOf(event), func() (*answer, bool, error) { return t.answerOnce(ctx, x) })
	}
	if err != nil {
		return refusal(err, direct)
	}
	return t.sendEvent(c, t.completed(event, a), a, structured)
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

// sendEvent sends an answer in the mode of its request, the data straight into
// the response.
func (t *Transport) sendEvent(c *fiber.Ctx, e *cloudevent.Event, a *answer, structured bool) error {
	e.DataEncoded = nil
	c.Set(fiber.HeaderCacheControl, "no-store")
	if structured {
		envelope, err := e.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encode the completed event: %w", err)
		}
		return server.Encode(c, execution.MediaCloudEvent, func(w io.Writer) error { return writeStructured(w, envelope, a) })
	}
	if err := setAttributes(c, e); err != nil {
		return err
	}
	return server.Encode(c, execution.MediaJSON, a.write)
}

// setAttributes says in c's header what an event without data says.
func setAttributes(c *fiber.Ctx, e *cloudevent.Event) error {
	header := attributeHeader{}
	if err := cehttp.WriteResponseWriter(binding.WithForceBinary(c.Context()), (*binding.EventMessage)(e), http.StatusOK, header); err != nil {
		return fmt.Errorf("encode the completed event: %w", err)
	}
	ceheader.EncodeAll(http.Header(header))
	for name, values := range header {
		c.Set(name, values[0])
	}
	return nil
}

// writeStructured writes an event whose envelope, a JSON object, has no data.
func writeStructured(w io.Writer, envelope []byte, a *answer) error {
	for _, part := range []string{string(bytes.TrimSuffix(envelope, []byte("}"))), `,"data":`} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	if err := a.write(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "}")
	return err
}

// attributeHeader takes the headers that the SDK writes. There is no body.
type attributeHeader http.Header

func (h attributeHeader) Header() http.Header       { return http.Header(h) }
func (attributeHeader) Write(p []byte) (int, error) { return len(p), nil }
func (attributeHeader) WriteHeader(int)             {}
