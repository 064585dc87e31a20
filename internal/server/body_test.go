package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/internal/budget"
	"github.com/preheat-dev/preheat/internal/server"
)

// TestBodiesAreBoundedTogether: bodies, and what handlers take beside them, stay
// within the server's budget, and are given back with the end of their exchanges.
func TestBodiesAreBoundedTogether(t *testing.T) {
	memory := budget.New(1000)
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, server.Config{Budget: memory}, func(app *fiber.App) {
		app.Post("/hold", func(c *fiber.Ctx) error {
			if _, err := server.Body(c); err != nil {
				return err
			}
			if err := budget.Take(server.Context(c), 100); err != nil {
				return err
			}
			return server.StreamBytes(c, func(_ context.Context, w io.Writer) error {
				close(entered)
				<-leave
				_, err := io.WriteString(w, "done")
				return err
			})
		})
		app.Post("/", func(c *fiber.Ctx) error {
			for range 3 { // it counts once
				if _, err := server.Body(c); err != nil {
					return err
				}
			}
			return c.SendString("ok")
		})
	})
	post := func(path string, size int) *http.Response {
		t.Helper()
		res, err := http.Post(s.url(path), "text/plain", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	held := make(chan string, 1)
	go func() {
		res, err := http.Post(s.url("/hold"), "text/plain", strings.NewReader(strings.Repeat("x", 600)))
		if err != nil {
			held <- err.Error()
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		held <- fmt.Sprint(string(body), err)
	}()
	<-entered
	if used := memory.Used(); used != 700 {
		t.Errorf("%d bytes are taken, not 700", used)
	}
	if res := post("/", 301); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("beyond the budget: %s, Retry-After %q", res.Status, res.Header.Get("Retry-After"))
	}
	if res := post("/", 300); res.StatusCode != http.StatusOK {
		t.Errorf("within the budget: %s", res.Status)
	}
	close(leave)
	if got := <-held; got != "done<nil>" {
		t.Error(got)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes are taken after the end", used)
	}
}
