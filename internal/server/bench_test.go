package server_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/internal/server"
)

const benchEvents = 1000

// BenchmarkServer measures whole exchanges on a kept loopback connection.
func BenchmarkServer(b *testing.B) {
	s, err := server.New(server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	s.App().Get("/tiny", func(c *fiber.Ctx) error { return c.SendString("ok") })
	s.App().Post("/large", func(c *fiber.Ctx) error {
		body, err := server.Body(c)
		if err != nil {
			return err
		}
		return c.SendString(http.DetectContentType(body))
	})
	s.App().Get("/events", func(c *fiber.Ctx) error {
		return server.Stream(c, func(_ context.Context, events *server.SSE) error {
			for i := range benchEvents {
				if err := events.Send("n", i); err != nil {
					return err
				}
			}
			return nil
		})
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}()
	large := []byte("POST /large HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", 1<<20))
	for name, request := range map[string][]byte{"tiny": []byte(get("/tiny")), "large": large, "events": []byte(get("/events"))} {
		b.Run(name, func(b *testing.B) {
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			br := bufio.NewReader(c)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := io.Copy(c, bytes.NewReader(request)); err != nil {
					b.Fatal(err)
				}
				res, err := http.ReadResponse(br, nil)
				if err != nil || res.StatusCode != http.StatusOK {
					b.Fatal(res, err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
