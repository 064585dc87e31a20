package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/server"
)

const mediaBatch = "application/cloudevents-batch+json"

// executeEvent answers POST /: an event whose data is a request, of whatever
// type it is, or a request as plain JSON. An event is answered with a
// completed event, unless a stream was asked for.
func (t *Transport) executeEvent(c *fiber.Ctx) error {
	media, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	switch {
	case err == nil && media == mediaBatch:
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "Batches of events are not taken: send one event at a time.")
	case media != execution.MediaCloudEvent && c.Get("Ce-Specversion") == "" && c.Get("Ce-Type") == "":
		return t.executeJSON(c)
	}
	if coding := c.Get(fiber.HeaderContentEncoding); coding != "" {
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "The content coding %q is not supported: send the body as it is.", coding)
	}
	request, problem := readEvent(c)
	if problem != nil {
		return problem
	}
	if request.Type() == execution.TypeCompleted {
		// One's own answer came back: nothing to do, and nothing to say that
		// could come back once more.
		return c.SendStatus(http.StatusAccepted)
	}
	data, problem := requestData(request)
	if problem != nil {
		return problem
	}
	p, problem := t.program(data)
	if problem != nil {
		return problem
	}
	if server.WantsEvents(c) {
		return t.stream(c, p)
	}
	result, err := t.run(server.Context(c), server.RequestID(c), p)
	if err != nil {
		return err
	}
	return t.answer(c, request, media == execution.MediaCloudEvent, result)
}

// readEvent reads the event that c carries, in the mode that its content type
// says.
func readEvent(c *fiber.Ctx) (*cloudevent.Event, *execution.Problem) {
	header := http.Header{}
	c.Request().Header.VisitAll(func(name, value []byte) { header.Add(string(name), string(value)) })
	message := cehttp.NewMessage(header, io.NopCloser(bytes.NewReader(c.BodyRaw())))
	e, err := binding.ToEvent(c.Context(), message)
	if err == nil {
		err = e.Validate()
	}
	if err != nil {
		p := execution.NewProblem(execution.ProblemMalformed, "The event is malformed: %s.", err)
		var invalid cloudevent.ValidationError
		if errors.As(err, &invalid) {
			for attribute := range invalid {
				p.Field = attribute
			}
		}
		return nil, p
	}
	return e, nil
}

// requestData is the request that e carries. Some clients encode JSON twice,
// as a string.
func requestData(e *cloudevent.Event) ([]byte, *execution.Problem) {
	data := bytes.TrimSpace(e.Data())
	if len(data) == 0 {
		p := execution.NewProblem(execution.ProblemMalformed, "The event has no data.")
		p.Field = "data"
		return nil, p
	}
	var text string
	if data[0] == '"' && json.Unmarshal(data, &text) == nil {
		data = []byte(text)
	}
	return data, nil
}

// answer sends the completed event, in the mode of its request.
func (t *Transport) answer(c *fiber.Ctx, request *cloudevent.Event, structured bool, r *execution.Result) error {
	e := cloudevent.New()
	for name, value := range request.Extensions() {
		e.SetExtension(name, value)
	}
	e.SetExtension(execution.ExtensionCausationID, request.ID())
	e.SetID(uuid.NewString())
	e.SetSource(t.source)
	e.SetType(execution.TypeCompleted)
	e.SetSubject(r.SandboxName)
	e.SetTime(time.Now())
	if err := e.SetData(execution.MediaJSON, r); err != nil {
		return fmt.Errorf("encoding the completed event: %w", err)
	}
	w := &responseWriter{header: http.Header{}}
	ctx := c.Context()
	mode := binding.WithForceBinary
	if structured {
		mode = binding.WithForceStructured
	}
	if err := cehttp.WriteResponseWriter(mode(ctx), (*binding.EventMessage)(&e), http.StatusOK, w); err != nil {
		return fmt.Errorf("encoding the completed event: %w", err)
	}
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
