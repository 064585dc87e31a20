package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/internal/server"
)

// A server that lingers loses no request of a balancer that has not heard of
// its end: neither on kept connections nor on new ones.
func TestLinger(t *testing.T) {
	const linger = 3 * time.Second
	r := serve(t, server.Config{Linger: linger}, func(app *fiber.App) {
		app.Get("/", func(c *fiber.Ctx) error { return c.SendString("here") })
	})
	get := func(conn net.Conn) *http.Response {
		t.Helper()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	kept := dial()
	if res := get(kept); res.StatusCode != http.StatusOK || res.Close {
		t.Fatalf("before: %s, close %v", res.Status, res.Close)
	}
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- r.stop() }()
	// The first answer that closes its connection says that it leaves.
	for {
		res := get(kept)
		if res.Close {
			break
		}
		if time.Since(began) > patience {
			t.Fatal("its connections are kept")
		}
	}
	if res := get(dial()); res.StatusCode != http.StatusOK || !res.Close {
		t.Errorf("a new connection: %s, close %v", res.Status, res.Close)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d < linger {
		t.Errorf("it ended after %v", d)
	}
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("it still listens")
	}
}
