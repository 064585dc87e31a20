package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/functions/chat"
	"github.com/preheat-dev/preheat/internal/server"
)

const patience = 10 * time.Second

// front is a chat function on a loopback port.
type front struct {
	url     string
	chat    *chat.Chat
	metrics *prometheus.Registry
	logs    *syncBuffer
	stop    func()
}

func testConfig() chat.Config {
	return chat.Config{
		LLM:        chat.LLM{FirstByteTimeout: patience, IdleTimeout: patience},
		ExecuteURL: "http://127.0.0.1:1", ExecuteTimeout: patience, EventSource: "/test", RefusalLimit: 1 << 20,
	}
}

// serveChat serves chat with options; its Run is not started.
func serveChat(t testing.TB, o chat.Options) *front {
	t.Helper()
	f := &front{metrics: prometheus.NewRegistry(), logs: &syncBuffer{}}
	o.Logger = slog.New(slog.NewJSONHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Registerer = f.metrics
	var err error
	if f.chat, err = chat.New(o); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Logger: o.Logger, Grace: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f.chat.Register(s.App())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(f.stop)
	return f
}

// withModel serves chat in front of a model server.
func withModel(t testing.TB, upstream http.HandlerFunc, change func(*chat.Config)) *front {
	t.Helper()
	o := chat.Options{Config: testConfig()}
	o.Config.LLM.URL = serveHTTP(t, upstream)
	if change != nil {
		change(&o.Config)
	}
	return serveChat(t, o)
}

// withExecute serves chat in front of an execute function.
func withExecute(t testing.TB, upstream http.HandlerFunc, change func(*chat.Config)) *front {
	t.Helper()
	o := chat.Options{Config: testConfig(), Forward: true}
	o.Config.ExecuteURL = serveHTTP(t, upstream)
	if change != nil {
		change(&o.Config)
	}
	return serveChat(t, o)
}

func serveHTTP(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// net/http notices a client's end only once the body is read.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

type answer struct {
	status int
	header http.Header
	body   string
	// err is how reading the body ended.
	err error
}

func call(t *testing.T, method, url, body string, header ...string) answer {
	t.Helper()
	res := open(t, context.Background(), method, url, body, header...)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(got), err}
}

func open(t testing.TB, ctx context.Context, method, url, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (f *front) complete(t *testing.T, body string, header ...string) answer {
	t.Helper()
	return call(t, "POST", f.url+"/v1/chat/completions", body, header...)
}

// openAIError decodes an error in OpenAI's shape.
func openAIError(t *testing.T, body string) (message, kind string) {
	t.Helper()
	var e struct {
		Error struct{ Message, Type string } `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("not an error in OpenAI's shape: %s", body)
	}
	return e.Error.Message, e.Error.Type
}

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

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

var testPage = fstest.MapFS{
	"index.html":               {Data: []byte("<!doctype html>")},
	"assets/index-B1cD2eF3.js": {Data: []byte("export {}")},
	"favicon.svg":              {Data: []byte("<svg/>")},
	".gitkeep":                 {Data: []byte("")},
}
