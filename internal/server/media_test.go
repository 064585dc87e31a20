package server_test

import (
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/preheat-dev/preheat/internal/server"
)

func TestWantsEvents(t *testing.T) {
	app := fiber.New()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false,
		"text/event-stream":                               true,
		"application/json, text/event-stream":             true,
		"text/event-stream;q=0.1":                         true,
		"text/event-stream; charset=utf-8":                true,
		"text/event-stream;q=0":                           false,
		"application/json, text/event-stream;q=0.1":       false,
		"application/json;q=0.5, text/event-stream;q=0.9": true,
		"*/*, text/event-stream;q=0.1":                    true,
		"text/event-stream;q=x":                           true,
	} {
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		c.Request().Header.Set("Accept", accept)
		if got := server.WantsEvents(c); got != want {
			t.Errorf("Accept: %s: %t", accept, got)
		}
		app.ReleaseCtx(c)
	}
}
