package cloudevent

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/cloudevents/sdk-go/v2/binding"
	ce "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent/ceheader"
	"github.com/preheat-dev/preheat/internal/server"
)

// send sends an answer in the mode of its request, the data straight into
// the response.
func (r *Receiver) send(c *fiber.Ctx, e *ce.Event, a *answer, structured bool) error {
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
func setAttributes(c *fiber.Ctx, e *ce.Event) error {
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
