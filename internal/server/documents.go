package server

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// Documents adds the descriptions of the interface: /openapi.yaml and, of the
// events, /asyncapi.yaml.
func Documents(r fiber.Router) {
	r.Get("/openapi.yaml", document(execution.OpenAPI()))
	r.Get("/asyncapi.yaml", document(execution.AsyncAPI()))
}

func document(text []byte) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, "application/yaml")
		return c.Send(slices.Clone(text)) // what is sent may be written to
	}
}
