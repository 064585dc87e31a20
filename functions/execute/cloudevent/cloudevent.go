// Package cloudevent serves execute as a receiver of CloudEvents over HTTP, in
// binary and in structured mode. An event whose data is a request is answered
// with a completed event, or with a stream where one was asked for. An event
// that is delivered again does not run its program again.
//
//	POST /                     an event, or a request as plain JSON
//	POST /v1/sandbox/execute   a request
//
// A request with an Idempotency-Key is not run again either.
package cloudevent

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/cloudevents/sdk-go/v2/binding/format"
	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/internal/server"
)

// Receiver answers events.
type Receiver struct {
	executor   *execute.Executor
	api        *httpapi.API
	source     string
	deliveries *deliveries
	record     Record
	eventBytes int
	sink       Sink
}

// Options is what New takes.
type Options struct {
	Executor *execute.Executor
	// API answers what is no event, and streams.
	API *httpapi.API
	// Source is the source attribute of completed events.
	Source string
	// Record, if not nil, knows of events that other replicas answer.
	Record Record
	// EventBytes bounds a completed event, except where it is delivered
	// directly; 0 does not.
	EventBytes int
	// Sink, if not nil, gets each completed event, too, and one for each
	// event that was answered with a stream.
	Sink Sink
}

// New returns a receiver, which serves once it is registered.
func New(o Options) *Receiver {
	return &Receiver{
		executor: o.Executor, api: o.API, source: o.Source, deliveries: newDeliveries(),
		record: o.Record, eventBytes: o.EventBytes, sink: o.Sink,
	}
}

// Register adds the route that takes events.
func (r *Receiver) Register(to fiber.Router) { to.Post("/", r.receive) }

// RegisterExecute adds the route that takes requests.
func (r *Receiver) RegisterExecute(to fiber.Router) {
	to.Post("/v1/sandbox/execute", func(c *fiber.Ctx) error {
		if err := server.RequireJSON(c); err != nil {
			return err
		}
		body, err := r.api.Body(c)
		if err != nil {
			return err
		}
		return r.respond(c, body)
	})
}

// MaxBody is the largest body that the route takes, in bytes: an event whose
// data is a request, in base64 and with its attributes. What a request itself
// may have is checked once it is decoded.
func MaxBody(l execution.ServerLimits) int { return int(2*l.BodyBytes) + 2*maxAttributes }

// receive answers POST /: an event whose data is a request, of whatever
// type it is, or a request as plain JSON. An event is answered with a
// completed event, unless a stream was asked for.
func (r *Receiver) receive(c *fiber.Ctx) error {
	media, params, _ := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	structured := media == execution.MediaCloudEvent
	switch {
	case media == ce.ApplicationCloudEventsBatchJSON:
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "Batches of events are not taken: send one event at a time.")
	case format.IsFormat(media) && !structured:
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "Events are taken in the JSON format only.")
	case structured && params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8"):
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "JSON must be in UTF-8, not in %.64q.", params["charset"])
	case !structured && !isEvent(c):
		if err := server.RequireJSON(c); err != nil {
			return err
		}
		body, err := r.api.Body(c)
		if err != nil {
			return err
		}
		return r.respond(c, unquoted(body))
	}
	if coding := c.Get(fiber.HeaderContentEncoding); coding != "" && !strings.EqualFold(coding, "identity") {
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "The content coding %.64q is not supported: send the body as it is.", coding)
	}
	limits := r.executor.Limits()
	most := MaxBody(limits)
	body, err := server.BodyWithin(c, int64(most), execution.NewProblem(execution.ProblemTooLarge,
		"The event exceeds %d bytes; its data may have %d (body_bytes).", most, limits.BodyBytes))
	if err != nil {
		return err
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
	p, problem := r.api.Decode(unquoted(event.Data()))
	if problem != nil {
		return refusal(problem, direct)
	}
	ctx, id := traced(server.Context(c), event), server.RequestID(c)
	key, problem := idempotencyKey(c)
	if problem != nil {
		return problem
	}
	if server.WantsEvents(c) {
		return r.api.Stream(ctx, c, p, func(result *execution.Result) { r.auditStream(ctx, event, result) })
	}
	x := &request{event: event, program: p, id: id, key: keyOf(event)}
	var a *answer
	switch {
	case key != "":
		a, err = r.answerIdempotent(ctx, x, key)
	case direct:
		a, err = r.answerDirect(ctx, x)
	default:
		a, err = r.deliveries.once(ctx, x.key, "", func() (*answer, bool, error) { return r.answerOnce(ctx, x) })
	}
	if err != nil {
		return refusal(err, direct)
	}
	return r.send(c, r.completed(event, a), a, structured)
}

// refusal is the error that answers an event. What no later delivery can get
// right must not look as if it could: a broker tries 404 again.
func refusal(err error, direct bool) error {
	var problem *execution.Problem
	if direct || !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
		return err
	}
	final := execution.NewProblem(execution.ProblemMalformed, "%s", problem.Detail)
	final.Field = problem.Field
	return final
}

// traced makes ctx a part of the trace that the event names in its extensions,
// unless the HTTP request has named it, which is nearer.
func traced(ctx context.Context, e *ce.Event) context.Context {
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
