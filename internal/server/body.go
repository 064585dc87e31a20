package server

import (
	"bytes"
	"fmt"
	"io"

	"github.com/gofiber/fiber/v2"
)

// Body returns c's body, without any content coding undone. It is valid until
// the exchange ends. A body beyond Config.BodyLimit is a problem (413).
func Body(c *fiber.Ctx) ([]byte, error) { return c.BodyRaw(), nil }

// Encode answers c with a body that write writes, straight into the response.
// An error before anything was sent is the handler's; after that the body is
// cut, so that the client can tell it from a complete one.
func Encode(c *fiber.Ctx, mediaType string, write func(io.Writer) error) error {
	var body bytes.Buffer
	if err := write(&body); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	c.Set(fiber.HeaderContentType, mediaType)
	return c.Send(body.Bytes())
}
