package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/internal/budget"
	"github.com/preheat-dev/preheat/internal/server"
)

// Handlers of net/http are part of an exchange as those of fiber are.
func TestNativeHandlers(t *testing.T) {
	next, causes := make(chan string), make(chan error, 1)
	memory := budget.New(1 << 20)
	r := serveWith(t, server.Config{BodyLimit: 1000, Budget: memory}, func(s *server.Server) {
		s.Handle("/events", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			server.Logger(r.Context()).Info("inside")
			if err := budget.Take(r.Context(), 100); err != nil {
				t.Error(err)
			}
			for {
				select {
				case text := <-next:
					_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					causes <- context.Cause(r.Context())
					return
				}
			}
		}))
		s.Handle("/echo", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			_, _ = w.Write(body)
		}))
		s.Handle("/panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
		s.Handle("/half", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic("boom")
		}))
	})
	t.Run("events are not held back", func(t *testing.T) {
		c := dial(t, r.addr, get("/events"))
		br := bufio.NewReader(c)
		next <- "one"
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Header.Get("X-Request-Id") == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("header %v", res.Header)
		}
		events := bufio.NewReader(res.Body)
		for _, text := range []string{"one", "two", "three"} {
			if text != "one" {
				next <- text
			}
			if line, err := events.ReadString('\n'); err != nil || line != "data: "+text+"\n" {
				t.Fatalf("got %q, %v", line, err)
			}
			_, _ = events.ReadString('\n')
		}
		c.Close()
		if cause := receive(t, "the end of the context", causes); !errors.Is(cause, server.ErrPeerGone) {
			t.Errorf("cause %v", cause)
		}
		r.logs.waitFor(t, `"msg":"inside","request_id":`)
		r.logs.waitFor(t, `"path":"/events","status":200`)
	})
	t.Run("bodies are bounded", func(t *testing.T) {
		if res, body := do(t, "PUT", r.url("/echo"), "hello", nil); res.StatusCode != 200 || string(body) != "hello" {
			t.Errorf("%d %s", res.StatusCode, body)
		}
		if res, body := do(t, "PUT", r.url("/echo"), strings.Repeat("x", 1001), nil); res.StatusCode != 413 {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	})
	t.Run("the guard stands before them", func(t *testing.T) {
		if res, body := do(t, "GET", r.url("/echo"), "", map[string]string{"Host": "evil.example"}); problem(t, res, body).Status != 403 {
			t.Errorf("%s", body)
		}
	})
	t.Run("a panic is a problem", func(t *testing.T) {
		if res, body := do(t, "GET", r.url("/panic"), "", nil); problem(t, res, body).Status != 500 {
			t.Errorf("%s", body)
		}
	})
	t.Run("a panic cuts what has begun", func(t *testing.T) {
		res, err := http.Get(r.url("/half"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q, %v", body, err)
		}
	})
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if used := memory.Used(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}

// Unfinished bodies cost next to nothing while nobody has asked for them.
func TestBodiesThatNobodyReadsTakeNoMemory(t *testing.T) {
	const clients, size = 40, 31 << 20
	entered, leave := make(chan struct{}, clients), make(chan struct{})
	r := serve(t, server.Config{BodyLimit: 32 << 20}, func(app *fiber.App) {
		app.Post("/", func(c *fiber.Ctx) error {
			entered <- struct{}{}
			<-leave
			return c.SendStatus(http.StatusUnauthorized)
		})
	})
	before := heap()
	piece := []byte(strings.Repeat("x", 64<<10))
	for range clients {
		c := dial(t, r.addr, fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", size+1))
		// It sends until nobody takes more.
		go func() {
			for range size / len(piece) {
				if _, err := c.Write(piece); err != nil {
					return
				}
			}
		}()
	}
	for range clients {
		receive(t, "a request", entered)
	}
	if grown := heap() - before; grown > clients*64<<10 {
		t.Errorf("%d bodies take %d bytes", clients, grown)
	} else {
		t.Logf("%d unfinished bodies of %d MiB take %d KiB", clients, size>>20, grown>>10)
	}
	close(leave)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Encode's errors are a problem before the first byte, and cut the body after.
func TestEncode(t *testing.T) {
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Get("/:how", func(c *fiber.Ctx) error {
			how := c.Params("how")
			c.Status(http.StatusAccepted).Set("Cache-Control", "no-store")
			return server.Encode(c, "application/json", func(w io.Writer) error {
				if how == "early" {
					return errors.New("no words")
				}
				for range 1000 {
					if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
						return err
					}
				}
				if how == "late" {
					return errors.New("out of words")
				}
				return nil
			})
		})
	})
	res, body := do(t, "GET", r.url("/whole"), "", nil)
	if res.StatusCode != 202 || len(body) != 1_000_000 || res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %d bytes, header %v", res.StatusCode, len(body), res.Header)
	}
	if res, body := do(t, "HEAD", r.url("/whole"), "", nil); res.StatusCode != 202 || len(body) != 0 {
		t.Errorf("HEAD: %d, %d bytes", res.StatusCode, len(body))
	}
	res, body = do(t, "GET", r.url("/early"), "", nil)
	if p := problem(t, res, body); p.Status != 500 {
		t.Errorf("%+v", p)
	}
	cut, err := http.Get(r.url("/late"))
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Body.Close()
	if _, err := io.ReadAll(cut.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after a late error: %v", err)
	}
	r.logs.waitFor(t, "out of words")
}
