package server_test

import (
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

func TestGuard(t *testing.T) {
	routes := func(app *fiber.App) {
		app.Get("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
		app.Post("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
	}
	local := server.Config{}
	listed := server.Config{
		AllowedHosts: []string{"chat.example.com", "only.example.com:8443"}, AllowedOrigins: []string{"https://page.example.com/"},
	}
	open := server.Config{AllowedHosts: []string{"*"}}
	type header = map[string]string
	for _, tt := range []struct {
		name   string
		config server.Config
		method string
		header header
		ok     bool
	}{
		{"plain", local, "GET", header{}, true},
		{"localhost", local, "POST", header{"Host": "localhost:1234"}, true},
		{"capitals", local, "POST", header{"Host": "LocalHost"}, true},
		{"IPv6", local, "POST", header{"Host": "[::1]:8080"}, true},
		{"IPv6 without port", local, "POST", header{"Host": "[::1]"}, true},
		{"rebound name", local, "GET", header{"Host": "evil.example:1234"}, false},
		{"rebound name, own origin", local, "POST", header{"Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, false},
		{"look-alike", local, "GET", header{"Host": "localhost.evil.example"}, false},
		{"other loopback address", local, "GET", header{"Host": "127.0.0.2"}, false},
		{"own origin", local, "POST", header{"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}, true},
		{"own origin, standard port", local, "POST", header{"Host": "localhost", "Origin": "http://localhost"}, true},
		{"own origin, standard port of TLS", local, "POST", header{"Host": "localhost:443", "Origin": "https://localhost"}, true},
		{"cross-origin form", local, "POST", header{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}, false},
		{"cross-origin without Origin", local, "POST", header{"Sec-Fetch-Site": "cross-site"}, false},
		{"other port of this machine", local, "POST", header{"Host": "localhost:8080", "Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, false},
		{"same site", local, "POST", header{"Sec-Fetch-Site": "same-site"}, false},
		{"opaque origin", local, "POST", header{"Origin": "null"}, false},
		{"cross-origin read", local, "GET", header{"Origin": "http://evil.example"}, false},
		{"followed link", local, "GET", header{"Sec-Fetch-Site": "cross-site"}, true},
		{"typed address", local, "GET", header{"Sec-Fetch-Site": "none"}, true},
		{"listed host", listed, "GET", header{"Host": "chat.example.com:1234"}, true},
		{"listed host and port", listed, "GET", header{"Host": "only.example.com:8443"}, true},
		{"listed host, other port", listed, "GET", header{"Host": "only.example.com"}, false},
		{"loopback when others are listed", listed, "GET", header{"Host": "localhost"}, true},
		{"unlisted host", listed, "GET", header{"Host": "example.com"}, false},
		{"listed origin", listed, "POST", header{"Host": "chat.example.com", "Origin": "https://page.example.com", "Sec-Fetch-Site": "same-site"}, true},
		{"listed origin, other scheme", listed, "POST", header{"Host": "chat.example.com", "Origin": "http://page.example.com"}, false},
		{"any host", open, "POST", header{"Host": "what.ever"}, true},
		{"any host, other origin", open, "POST", header{"Host": "what.ever", "Origin": "http://evil.example"}, false},
		{"any host, behind a proxy", open, "POST", header{"Host": "inner", "Origin": "https://outer", "Sec-Fetch-Site": "same-origin"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := serve(t, tt.config, routes)
			res, body := do(t, tt.method, r.url("/"), "", tt.header)
			for name := range res.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("CORS header %s", name)
				}
			}
			if tt.ok {
				if res.StatusCode != 200 || string(body) != "ok" {
					t.Errorf("refused: %d %s", res.StatusCode, body)
				}
				return
			}
			if p := problem(t, res, body); !p.IsKind(execution.ProblemForbidden) {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestGuardConfig(t *testing.T) {
	for _, c := range []server.Config{
		{AllowedHosts: []string{"http://localhost"}}, {AllowedHosts: []string{" "}},
		{AllowedOrigins: []string{"localhost"}}, {AllowedOrigins: []string{"https://a/b"}},
	} {
		if _, err := server.New(c); err == nil {
			t.Errorf("%v %v was accepted", c.AllowedHosts, c.AllowedOrigins)
		}
	}
}
