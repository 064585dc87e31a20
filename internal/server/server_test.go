package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// patience bounds every wait of these tests. Nothing is asserted about how
// much of it was used, unless a test says so.
const patience = 10 * time.Second

// running is a server on a loopback port.
type running struct {
	addr string
	logs *logBuffer
	stop func() error
}

func (r *running) url(path string) string { return "http://" + r.addr + path }

func serve(t *testing.T, config server.Config, routes func(*fiber.App)) *running {
	t.Helper()
	return serveWith(t, config, func(s *server.Server) { routes(s.App()) })
}

func serveWith(t *testing.T, config server.Config, routes func(*server.Server)) *running {
	t.Helper()
	before, _ := goroutines()
	logs := &logBuffer{}
	config.Logger = slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	routes(s)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	var once sync.Once
	var stopped error
	r := &running{addr: ln.Addr().String(), logs: logs}
	r.stop = func() error {
		once.Do(func() {
			cancel()
			stopped = <-done
		})
		return stopped
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		noMoreGoroutines(t, before)
	})
	return r
}

// noMoreGoroutines fails t unless there are at most as many as before, soon.
func noMoreGoroutines(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		now, stacks := goroutines()
		if now <= before {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before:\n%s", now, before, stacks)
		}
	}
}

func goroutines() (int, string) {
	buf := make([]byte, 1<<20)
	return runtime.NumGoroutine(), string(buf[:runtime.Stack(buf, true)])
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBuffer) waitFor(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(l.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log never had %s:\n%s", text, l)
		}
	}
}

func do(t *testing.T, method, url, body string, header map[string]string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, got
}

func problem(t *testing.T, res *http.Response, body []byte) *execution.Problem {
	t.Helper()
	if ct := res.Header.Get("Content-Type"); ct != execution.MediaProblem {
		t.Fatalf("content type %q, body %s", ct, body)
	}
	var p execution.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if p.Status != res.StatusCode || p.Title == "" || p.Detail == "" || p.RequestID == "" || p.RequestID != res.Header.Get("X-Request-Id") {
		t.Fatalf("incomplete problem %+v for status %d", p, res.StatusCode)
	}
	return &p
}

// dial opens a plain connection and sends text on it.
func dial(t *testing.T, addr, text string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

func receive[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

func TestErrorsAreProblems(t *testing.T) {
	r := serve(t, server.Config{BodyLimit: 1000}, func(app *fiber.App) {
		app.Get("/unknown", func(*fiber.Ctx) error { return errors.New("secret: password=hunter2") })
		app.Get("/panic", func(*fiber.Ctx) error { panic("boom") })
		app.Get("/fiber", func(*fiber.Ctx) error { return fiber.NewError(http.StatusTeapot, "short and stout") })
		app.Get("/busy", func(*fiber.Ctx) error {
			p := execution.NewProblem(execution.ProblemNoSandbox, "Ten wait already.")
			p.RetryAfterSeconds = 7
			return fmt.Errorf("claim: %w", p)
		})
		app.Post("/json", func(c *fiber.Ctx) error {
			if err := server.RequireJSON(c); err != nil {
				return err
			}
			body, err := server.Body(c)
			if err != nil {
				return err
			}
			return c.Send(body)
		})
	})
	jsonType := map[string]string{"Content-Type": "application/json"}
	for _, tt := range []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
		kind                     execution.ProblemType
	}{
		{"unknown error", "GET", "/unknown", "", nil, 500, execution.ProblemInternal},
		{"panic", "GET", "/panic", "", nil, 500, execution.ProblemInternal},
		{"fiber error", "GET", "/fiber", "", nil, 418, ""},
		{"wrapped problem", "GET", "/busy", "", nil, 429, execution.ProblemNoSandbox},
		{"no such path", "GET", "/<script>", "", nil, 404, execution.ProblemNotFound},
		{"wrong method", "DELETE", "/json", "", nil, 405, execution.ProblemMethodNotAllowed},
		{"over the limit", "POST", "/json", strings.Repeat("x", 1001), jsonType, 413, execution.ProblemTooLarge},
		{"form", "POST", "/json", "a=b", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, execution.ProblemUnsupportedMedia},
		{"no type", "POST", "/json", "{}", nil, 415, execution.ProblemUnsupportedMedia},
		{"text", "POST", "/json", "{}", map[string]string{"Content-Type": "text/plain"}, 415, execution.ProblemUnsupportedMedia},
		{"latin1", "POST", "/json", "{}", map[string]string{"Content-Type": "application/json; charset=latin1"}, 415, execution.ProblemUnsupportedMedia},
		{"gzip", "POST", "/json", "x", map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415, execution.ProblemUnsupportedMedia},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, body := do(t, tt.method, r.url(tt.path), tt.body, tt.header)
			p := problem(t, res, body)
			if p.Status != tt.status || tt.kind != "" && !p.IsKind(tt.kind) {
				t.Errorf("got %+v", p)
			}
			if bytes.Contains(body, []byte("hunter2")) || bytes.Contains(body, []byte("boom")) || bytes.Contains(body, []byte("<script>")) {
				t.Errorf("leaks: %s", body)
			}
			if tt.kind == execution.ProblemNoSandbox && res.Header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
			}
			if tt.status == 405 && res.Header.Get("Allow") != "POST" {
				t.Errorf("Allow %q", res.Header.Get("Allow"))
			}
		})
	}
	for _, ct := range []string{"application/json", "application/json; charset=UTF-8", "application/cloudevents+json"} {
		if res, body := do(t, "POST", r.url("/json"), "{}", map[string]string{"Content-Type": ct}); res.StatusCode != 200 || string(body) != "{}" {
			t.Errorf("%s: %d %s", ct, res.StatusCode, body)
		}
	}
	r.logs.waitFor(t, "hunter2")
	r.logs.waitFor(t, `"panic":"boom"`)
}

func TestRequestID(t *testing.T) {
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Get("/", func(c *fiber.Ctx) error {
			server.Logger(server.Context(c)).Info("inside")
			return c.SendString(server.RequestID(c))
		})
	})
	res, body := do(t, "GET", r.url("/?key=secret"), "", map[string]string{"X-Request-Id": "abc-1.2_3:4"})
	if string(body) != "abc-1.2_3:4" || res.Header.Get("X-Request-Id") != string(body) {
		t.Errorf("id %s, header %s", body, res.Header.Get("X-Request-Id"))
	}
	r.logs.waitFor(t, `"msg":"inside","request_id":"abc-1.2_3:4"`)
	r.logs.waitFor(t, `"msg":"request","request_id":"abc-1.2_3:4","method":"GET","path":"/","status":200`)
	if strings.Contains(r.logs.String(), "secret") {
		t.Error("the query is in the log")
	}
	for _, bad := range []string{"a b", "x\"y", strings.Repeat("a", 129)} {
		if _, body := do(t, "GET", r.url("/"), "", map[string]string{"X-Request-Id": bad}); string(body) == bad || len(body) != 36 {
			t.Errorf("%q became %q", bad, body)
		}
	}
}

func TestKeepAliveAndPipelining(t *testing.T) {
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Get("/plain/:n", func(c *fiber.Ctx) error {
			if err := server.Context(c).Err(); err != nil {
				return err
			}
			return c.SendString("plain " + c.Params("n"))
		})
		app.Get("/stream/:n", func(c *fiber.Ctx) error {
			n := c.Params("n")
			return server.Stream(c, func(ctx context.Context, events *server.SSE) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return events.Send("n", n)
			})
		})
	})
	want := func(br *bufio.Reader, text string) {
		t.Helper()
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(body), text) {
			t.Fatalf("got %q, %v, want %q", body, err, text)
		}
	}
	c := dial(t, r.addr, get("/plain/1"))
	br := bufio.NewReader(c)
	want(br, "plain 1")
	for i, path := range []string{"/stream/2", "/plain/3", "/stream/4"} {
		if _, err := io.WriteString(c, get(path)); err != nil {
			t.Fatal(err)
		}
		want(br, fmt.Sprint(i+2))
	}
	if _, err := io.WriteString(c, get("/plain/5")+get("/stream/6")+get("/stream/7")+get("/plain/8")); err != nil {
		t.Fatal(err)
	}
	for i := 5; i <= 8; i++ {
		want(br, fmt.Sprint(i))
	}
}

func TestLyingContentLength(t *testing.T) {
	r := serve(t, server.Config{BodyLimit: 1000, HeaderTimeout: time.Second, BodyTimeout: 300 * time.Millisecond}, func(app *fiber.App) {
		app.Post("/", func(c *fiber.Ctx) error {
			if _, err := server.Body(c); err != nil {
				return err
			}
			return c.SendString("read")
		})
	})
	post := func(length int) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", length)
	}
	for _, tt := range []struct {
		name, text string
		status     int
	}{
		{"too large, unsent", post(1 << 40), 413},
		{"too large, sent", post(5_000_000) + strings.Repeat("x", 5_000_000), 413},
		{"chunked beyond the limit", "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("100\r\n"+strings.Repeat("x", 256)+"\r\n", 8), 413},
		{"longer than sent", post(500) + "{}", 408},
		{"negative", strings.Replace(post(5), ": 5", ": -5", 1), 400},
		{"no number", strings.Replace(post(5), ": 5", ": x", 1), 400},
		{"slow header", "GET / HTTP/1.1\r\nHost: loc", 408},
		{"huge header", "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 40_000) + "\r\n\r\n", 431},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, r.addr, tt.text)
			br := bufio.NewReader(c)
			res, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if p := problem(t, res, body); p.Status != tt.status {
				t.Errorf("got %+v", p)
			}
			if _, err := br.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("the connection was not closed: %v", err)
			}
		})
	}
}

// A header that trickles in is cut by its deadline, however steadily.
func TestSlowLoris(t *testing.T) {
	r := serve(t, server.Config{HeaderTimeout: 300 * time.Millisecond}, func(app *fiber.App) {
		app.Get("/", func(c *fiber.Ctx) error { return c.SendString("read") })
	})
	c := dial(t, r.addr, "GET / HTTP/1.1\r\n")
	ended := make(chan []byte, 1)
	go func() {
		got, _ := io.ReadAll(c)
		ended <- got
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case got := <-ended:
			if !bytes.Contains(got, []byte(" 408 ")) {
				t.Errorf("got %q", got)
			}
			return
		case <-tick.C:
			_, _ = fmt.Fprintf(c, "X-%d: y\r\n", i)
		case <-time.After(patience):
			t.Fatal("still connected")
		}
	}
}
