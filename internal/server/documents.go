package server

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// Documents adds the descriptions of the interface: /openapi.yaml, the part of
// it that is of use to a language model, /openapi.json, and, of the events,
// /asyncapi.yaml.
func Documents(r fiber.Router) {
	r.Get("/openapi.yaml", document("application/yaml", execution.OpenAPI()))
	r.Get("/openapi.json", document(fiber.MIMEApplicationJSON, execution.ToolsAPI()))
	r.Get("/asyncapi.yaml", document("application/yaml", execution.AsyncAPI()))
}

func document(media string, text []byte) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, media)
		return c.Send(slices.Clone(text)) // what is sent may be written to
	}
}
