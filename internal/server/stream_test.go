package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/internal/server"
)

// waiting has routes whose handlers only wait for their context to end and
// tell why it did.
type waiting struct {
	entered chan string
	causes  chan error
}

func newWaiting() *waiting {
	return &waiting{entered: make(chan string, 1000), causes: make(chan error, 1000)}
}

func (w *waiting) routes(app *fiber.App) {
	app.Get("/plain", func(c *fiber.Ctx) error {
		ctx := server.Context(c)
		w.entered <- "plain"
		<-ctx.Done()
		w.causes <- context.Cause(ctx)
		return context.Cause(ctx)
	})
	app.Get("/stream", func(c *fiber.Ctx) error {
		return server.Stream(c, func(ctx context.Context, events *server.SSE) error {
			if err := events.Send("start", map[string]string{"text": "<one>\ntwo"}); err != nil {
				return err
			}
			w.entered <- "stream"
			<-ctx.Done()
			w.causes <- context.Cause(ctx)
			return events.Send("exit", "cut")
		})
	})
}

func TestVanishingClient(t *testing.T) {
	ways := map[string]func(*net.TCPConn) error{
		"close": (*net.TCPConn).Close,
		"reset": func(c *net.TCPConn) error {
			return errors.Join(c.SetLinger(0), c.Close())
		},
		"half-close": (*net.TCPConn).CloseWrite,
		"close with unread requests": func(c *net.TCPConn) error {
			_, err := io.WriteString(c, get("/plain"))
			return errors.Join(err, c.Close())
		},
	}
	w := newWaiting()
	r := serve(t, server.Config{PingInterval: time.Hour}, w.routes)
	for name, leave := range ways {
		for _, path := range []string{"/plain", "/stream"} {
			t.Run(name+path, func(t *testing.T) {
				c := dial(t, r.addr, get(path))
				receive(t, "the request", w.entered)
				if err := leave(c); err != nil {
					t.Fatal(err)
				}
				left := time.Now()
				if cause := receive(t, "the end of the context", w.causes); !errors.Is(cause, server.ErrPeerGone) {
					t.Errorf("cause %v", cause)
				}
				t.Logf("noticed after %v", time.Since(left))
			})
		}
	}
	r.logs.waitFor(t, `"client_gone":true`)
}

// Each context must end because of its own client, while file descriptors are
// being reused all the time.
func TestVanishingClientsAtOnce(t *testing.T) {
	const clients, rounds = 16, 25
	type key struct{ client, round string }
	var mu sync.Mutex
	ended := map[key]chan error{}
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Get("/wait/:client/:round", func(c *fiber.Ctx) error {
			ctx := server.Context(c)
			mu.Lock()
			ch := ended[key{c.Params("client"), c.Params("round")}]
			mu.Unlock()
			ch <- nil
			select {
			case <-ctx.Done():
				ch <- context.Cause(ctx)
			case <-time.After(patience):
				ch <- errors.New("never noticed")
			}
			return nil
		})
		app.Get("/quick", func(c *fiber.Ctx) error {
			ctx := server.Context(c)
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return c.SendString("ok")
		})
	})
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for j := range rounds {
				ch := make(chan error, 2)
				mu.Lock()
				ended[key{fmt.Sprint(i), fmt.Sprint(j)}] = ch
				mu.Unlock()
				c := dial(t, r.addr, get("/quick"))
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil || res.StatusCode != 200 {
					t.Errorf("quick: %v %v", res, err)
					return
				}
				if _, err := io.WriteString(c, get(fmt.Sprintf("/wait/%d/%d", i, j))); err != nil {
					t.Error(err)
					return
				}
				<-ch
				select {
				case err := <-ch:
					t.Errorf("ended while its client was there: %v", err)
				case <-time.After(time.Duration(j%5) * time.Millisecond):
				}
				c.Close()
				if err := <-ch; !errors.Is(err, server.ErrPeerGone) {
					t.Errorf("cause %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestContextEndsWithTheExchange(t *testing.T) {
	contexts := make(chan context.Context, 2)
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Get("/plain", func(c *fiber.Ctx) error {
			contexts <- server.Context(c)
			return nil
		})
		app.Get("/stream", func(c *fiber.Ctx) error {
			return server.Stream(c, func(ctx context.Context, _ *server.SSE) error {
				contexts <- ctx
				return nil
			})
		})
	})
	for _, path := range []string{"/plain", "/stream"} {
		do(t, "GET", r.url(path), "", nil)
		ctx := receive(t, "the context", contexts)
		receive(t, "its end", ctx.Done())
		if cause := context.Cause(ctx); !errors.Is(cause, server.ErrDone) {
			t.Errorf("%s: cause %v", path, cause)
		}
	}
	// A response without a body has no producer, and ends all the same.
	if res, _ := do(t, "HEAD", r.url("/stream"), "", nil); res.StatusCode != 200 {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
	r.logs.waitFor(t, `"method":"HEAD"`)
}

func TestStreamFraming(t *testing.T) {
	w := newWaiting()
	r := serve(t, server.Config{PingInterval: 30 * time.Millisecond}, w.routes)
	res, err := http.Get(r.url("/stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	br := bufio.NewReader(res.Body)
	want := "event: start\ndata: {\"text\":\"<one>\\ntwo\"}\n\nevent: ping\ndata: {}\n\nevent: ping\ndata: {}\n\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(br, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// A client that does not read holds its handler for the write timeout only.
func TestStalledClient(t *testing.T) {
	ended := make(chan error, 1)
	r := serve(t, server.Config{WriteTimeout: 200 * time.Millisecond}, func(app *fiber.App) {
		app.Get("/flood", func(c *fiber.Ctx) error {
			return server.Stream(c, func(ctx context.Context, events *server.SSE) error {
				line := strings.Repeat("x", 64<<10)
				for {
					if err := events.Send("line", line); err != nil {
						<-ctx.Done()
						ended <- context.Cause(ctx)
						return err
					}
				}
			})
		})
	})
	dial(t, r.addr, get("/flood"))
	if err := receive(t, "the end of the stream", ended); !errors.Is(err, server.ErrPeerGone) {
		t.Errorf("cause %v", err)
	}
}

// A slow reader is not a stalled one.
func TestLongStreamOutlivesTheTimeouts(t *testing.T) {
	const timeout, pieces = 200 * time.Millisecond, 12
	r := serve(t, server.Config{WriteTimeout: timeout, HeaderTimeout: timeout, BodyTimeout: timeout, IdleTimeout: timeout}, func(app *fiber.App) {
		app.Get("/slow", func(c *fiber.Ctx) error {
			return server.Stream(c, func(_ context.Context, events *server.SSE) error {
				for i := range pieces {
					time.Sleep(timeout / 4)
					if err := events.Send("n", i); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	if _, body := do(t, "GET", r.url("/slow"), "", nil); strings.Count(string(body), "event: n") != pieces {
		t.Errorf("got %s", body)
	}
}

func TestFailedProducerCutsTheBody(t *testing.T) {
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Get("/:how", func(c *fiber.Ctx) error {
			how := c.Params("how")
			return server.StreamBytes(c, func(_ context.Context, w io.Writer) error {
				if _, err := io.WriteString(w, "half"); err != nil {
					return err
				}
				if how == "panic" {
					panic("boom")
				}
				return errors.New("out of words")
			})
		})
	})
	for _, how := range []string{"error", "panic"} {
		res, err := http.Get(r.url("/" + how))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q, %v", how, body, err)
		}
	}
	r.logs.waitFor(t, "out of words")
	r.logs.waitFor(t, "boom")
}

func TestShutdown(t *testing.T) {
	t.Run("cuts what outlives the grace period", func(t *testing.T) {
		w := newWaiting()
		r := serve(t, server.Config{Grace: 100 * time.Millisecond}, w.routes)
		stream, plain := dial(t, r.addr, get("/stream")), dial(t, r.addr, get("/plain"))
		receive(t, "a request", w.entered)
		receive(t, "a request", w.entered)
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if cause := receive(t, "the end", w.causes); !errors.Is(cause, server.ErrShutdown) {
				t.Errorf("cause %v", cause)
			}
		}
		if got, err := io.ReadAll(stream); err != nil || !strings.Contains(string(got), "event: exit\ndata: \"cut\"\n\n") {
			t.Errorf("the last words are missing: %q, %v", got, err)
		}
		if got, err := io.ReadAll(plain); err != nil || !strings.Contains(string(got), " 503 ") {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("lets requests end", func(t *testing.T) {
		entered, finish := make(chan struct{}), make(chan struct{})
		r := serve(t, server.Config{Grace: patience}, func(app *fiber.App) {
			app.Get("/", func(c *fiber.Ctx) error {
				close(entered)
				<-finish
				if err := server.Context(c).Err(); err != nil {
					return err
				}
				return c.SendString("whole")
			})
			app.Get("/watch", func(c *fiber.Ctx) error {
				return server.Stream(c, func(ctx context.Context, events *server.SSE) error {
					if err := events.Send("state", 1); err != nil {
						return err
					}
					<-server.Draining(ctx)
					return nil
				})
			})
		})
		// The last one is accepted when the others are.
		silent, watch, c := dial(t, r.addr, ""), dial(t, r.addr, get("/watch")), dial(t, r.addr, get("/"))
		receive(t, "the request", entered)
		stopped := make(chan error, 1)
		go func() { stopped <- r.stop() }()
		if got, err := io.ReadAll(watch); err != nil || !strings.HasSuffix(string(got), "\r\n0\r\n\r\n") {
			t.Errorf("the endless stream: %q, %v", got, err)
		}
		if _, err := io.ReadAll(silent); err != nil {
			t.Errorf("the silent connection: %v", err)
		}
		if _, err := net.Dial("tcp", r.addr); err == nil {
			t.Error("still accepts")
		}
		close(finish)
		if got, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(got), "whole") || !strings.Contains(string(got), "Connection: close") {
			t.Errorf("got %q, %v", got, err)
		}
		if err := receive(t, "the end of Serve", stopped); err != nil {
			t.Error(err)
		}
	})
	t.Run("reports handlers that do not end", func(t *testing.T) {
		entered, finish := make(chan struct{}), make(chan struct{})
		s, err := server.New(server.Config{Grace: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s.App().Get("/", func(*fiber.Ctx) error {
			close(entered)
			<-finish
			return nil
		})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, ln) }()
		dial(t, ln.Addr().String(), get("/"))
		receive(t, "the request", entered)
		cancel()
		if err := receive(t, "the end of Serve", done); err == nil {
			t.Error("no error")
		}
		close(finish)
	})
}
