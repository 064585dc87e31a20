package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/budget"
	"github.com/preheat-dev/preheat/internal/server"
)

// A handler's own limit is the one that its clients are answered with, however
// the body comes, and the server's holds in any case.
func TestBodyWithin(t *testing.T) {
	memory := budget.New(1 << 20)
	r := serve(t, server.Config{BodyLimit: 1000, Budget: memory}, func(app *fiber.App) {
		within := func(limit int64) fiber.Handler {
			return func(c *fiber.Ctx) error {
				body, err := server.BodyWithin(c, limit, execution.NewProblem(execution.ProblemTooLarge, "More than ten."))
				if err != nil {
					return err
				}
				if got := memory.Used(); got < 2*int64(len(body)) {
					t.Errorf("%d bytes are taken for a body of %d and what is made of it", got, len(body))
				}
				return c.Send(body)
			}
		}
		app.Post("/ten", within(10))
		app.Post("/more", within(5000))
	})
	for name, test := range map[string]struct {
		path   string
		size   int
		detail string // of the problem, if there is one
	}{
		"all of it":              {"/ten", 10, ""},
		"one byte more":          {"/ten", 11, "More than ten."},
		"more than the server's": {"/ten", 5000, "More than ten."},
		"the server's":           {"/more", 1001, "The body exceeds 1000 bytes."},
	} {
		for _, chunked := range []bool{false, true} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url(test.path), strings.NewReader(strings.Repeat("x", test.size)))
			if err != nil {
				t.Fatal(err)
			}
			if chunked {
				req.ContentLength = -1
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.detail == "" && (res.StatusCode != 200 || len(body) != test.size):
				t.Errorf("%s: %d, %s", name, res.StatusCode, body)
			case test.detail != "":
				if p := problem(t, res, body); p.Status != 413 || p.Detail != test.detail {
					t.Errorf("%s, chunked %v: %+v", name, chunked, p)
				}
			}
		}
	}
}
