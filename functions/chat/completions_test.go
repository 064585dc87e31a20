package chat_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/functions/chat"
)

const (
	ask       = `{"messages":[{"role":"user","content":"hi"}]}`
	askStream = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

func TestBodyPassesThrough(t *testing.T) {
	bodies := make(chan string, 1)
	f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		bodies <- string(got)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1"}`)
	}, func(c *chat.Config) { c.LLM.Model = `mo"del` })
	for _, tt := range []struct{ in, out string }{
		{`{"model":"x" ,  "n":1.50,"seed":12345678901234567890,"new":{"b":1,"a":"\u00e9"}}`, ""},
		{`{}`, `{"model":"mo\"del"}`},
		{` { "a" : 1e400 } `, ` {"model":"mo\"del", "a" : 1e400 } `},
		{`{"a":1,"model":null,"b":2}`, `{"a":1,"model":"mo\"del","b":2}`},
		{`{"model": "" }`, `{"model": "mo\"del" }`},
		{`{"nested":{"model":"y"}}`, `{"model":"mo\"del","nested":{"model":"y"}}`},
	} {
		got := f.complete(t, tt.in)
		if got.status != 200 || got.body != `{"id":"1"}` {
			t.Errorf("%s: %+v", tt.in, got)
			continue
		}
		want := tt.out
		if want == "" {
			want = tt.in
		}
		if body := <-bodies; body != want {
			t.Errorf("%s became %s, want %s", tt.in, body, want)
		}
	}
}

func TestBadRequests(t *testing.T) {
	f := withModel(t, func(http.ResponseWriter, *http.Request) { t.Error("the model server was asked") }, nil)
	for body, want := range map[string]string{
		`{"a":`: "at byte 5", `[]`: "object", `{"a":1} x`: "at byte", `{"stream":"yes"}`: "stream", `{"model":7}`: "model",
		`{"model":"a","model":"b"}`: "duplicate", strings.Repeat(`{"a":`, 20_000): "not JSON", "\xff": "not JSON",
	} {
		got := f.complete(t, body)
		if message, kind := openAIError(t, got.body); got.status != 400 || kind != "invalid_request_error" || !strings.Contains(message, want) {
			t.Errorf("%.40s: %d %s", body, got.status, got.body)
		}
	}
	got := f.complete(t, "a=b", "Content-Type", "application/x-www-form-urlencoded")
	if openAIError(t, got.body); got.status != 415 {
		t.Errorf("form: %+v", got)
	}
}

func TestHeaders(t *testing.T) {
	headers := make(chan http.Header, 1)
	handler := func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-RateLimit-Remaining-Requests", "9")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = io.WriteString(w, `{"id":"1"}`)
	}
	for _, tt := range []struct {
		name   string
		change func(*chat.Config)
		want   string
	}{
		{"no key", func(*chat.Config) {}, ""},
		{"key", func(c *chat.Config) { c.LLM.APIKey = "sk-secret"; c.LLM.ForwardAuthorization = true }, "Bearer sk-secret"},
		{"client's", func(c *chat.Config) { c.LLM.ForwardAuthorization = true }, "Bearer client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := withModel(t, handler, tt.change)
			got := f.complete(t, ask, "Authorization", "Bearer client", "Cookie", "c=d", "Traceparent", "00-1-2-01", "X-Request-Id", "req-1")
			up := <-headers
			if up.Get("Authorization") != tt.want || up.Get("Cookie") != "" || up.Get("Traceparent") != "00-1-2-01" || up.Get("X-Request-Id") != "req-1" {
				t.Errorf("the model server got %v", up)
			}
			h := got.header
			if h.Get("X-Ratelimit-Remaining-Requests") != "9" || h.Get("Set-Cookie") != "" || h.Get("Access-Control-Allow-Origin") != "" || h.Get("X-Request-Id") != "req-1" {
				t.Errorf("the client got %v", h)
			}
			f.stop()
			if log := f.logs.String(); strings.Contains(log, "sk-secret") || strings.Contains(log, "Bearer") {
				t.Errorf("the log has the key: %s", log)
			}
		})
	}
}

func TestUpstreamErrors(t *testing.T) {
	for _, tt := range []struct {
		name, media, body string
		status            int
		want              string // the body, or part of the message
	}{
		{"rate limit", "application/json", `{"error":{"message":"slow down","type":"rate_limit","code":null}}`, 429, ""},
		{"bad request", "application/json; charset=utf-8", `{"error":{"message":"no","type":"t"},"extra":[1]}`, 400, ""},
		{"proxy's page", "text/html", "<h1>Bad gateway</h1>", 502, "<h1>Bad gateway</h1>"},
		{"no body", "text/plain", "", 503, "status 503"},
		{"a page instead of an API", "text/html", "<h1>Welcome</h1>", 200, "Is its URL right?"},
	} {
		for _, body := range []string{ask, askStream} {
			t.Run(fmt.Sprint(tt.name, " ", len(body)), func(t *testing.T) {
				f := withModel(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", tt.media)
					w.Header().Set("Retry-After", "11")
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, tt.body)
				}, nil)
				got := f.complete(t, body)
				message, _ := openAIError(t, got.body)
				wantStatus := max(tt.status, 400)
				if tt.status == 200 {
					wantStatus = 502
				}
				if got.status != wantStatus || got.header.Get("Retry-After") != "11" || got.header.Get("Content-Type") != "application/json" {
					t.Errorf("got %+v", got)
				}
				if tt.want == "" && got.body != tt.body || !strings.Contains(message, tt.want) {
					t.Errorf("got %s", got.body)
				}
			})
		}
	}
}

func TestUnreachableAndSilentUpstream(t *testing.T) {
	t.Run("unreachable", func(t *testing.T) {
		o := chat.Options{Config: testConfig()}
		o.Config.LLM.URL = "http://user:hunter2@127.0.0.1:1"
		f := serveChat(t, o)
		got := f.complete(t, ask)
		if openAIError(t, got.body); got.status != 502 {
			t.Errorf("got %+v", got)
		}
		f.stop()
		if strings.Contains(f.logs.String()+got.body, "hunter2") {
			t.Error("the URL's password shows")
		}
	})
	t.Run("silent", func(t *testing.T) {
		f := withModel(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(c *chat.Config) { c.LLM.FirstByteTimeout = 50 * time.Millisecond })
		got := f.complete(t, askStream)
		if openAIError(t, got.body); got.status != 504 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("redirect", func(t *testing.T) {
		f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, nil)
		got := f.complete(t, ask)
		if openAIError(t, got.body); got.status != 502 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("itself", func(t *testing.T) {
		var f *front
		relay := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
			res := open(t, r.Context(), r.Method, f.url+r.URL.Path, ask, "X-Preheat-Via", r.Header.Get("X-Preheat-Via"))
			defer res.Body.Close()
			w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
			w.WriteHeader(res.StatusCode)
			_, _ = io.Copy(w, res.Body)
		})
		o := chat.Options{Config: testConfig()}
		o.Config.LLM.URL = relay
		f = serveChat(t, o)
		got := f.complete(t, ask)
		if openAIError(t, got.body); got.status != 508 {
			t.Errorf("got %+v", got)
		}
	})
}

// writer sends pieces of a response at once.
type writer struct {
	http.ResponseWriter
	*http.ResponseController
}

func streaming(w http.ResponseWriter) writer {
	w.Header().Set("Content-Type", "text/event-stream")
	return writer{w, http.NewResponseController(w)}
}

func (w writer) send(pieces ...string) {
	for _, p := range pieces {
		_, _ = io.WriteString(w.ResponseWriter, p)
		_ = w.Flush()
		time.Sleep(time.Millisecond)
	}
}

func data(content string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", content)
}

const done = "data: [DONE]\n\n"

func TestStream(t *testing.T) {
	euro := "data: {\"c\":\"€\"}\n\n"
	huge := data(strings.Repeat("x", 3<<20))
	reported := `data: {"error":{"message":"out of memory","type":"server_error"}}` + "\n\n"
	for _, tt := range []struct {
		name   string
		pieces []string
		cut    bool // the connection breaks
		want   string
		failed string // type of an error that chat adds
	}{
		{"plain", []string{data("a"), data("b"), done}, false, data("a") + data("b") + done, ""},
		{"byte by byte", strings.Split(euro+data("b")+done, ""), false, euro + data("b") + done, ""},
		{"in mid-rune", []string{euro[:12], euro[12:13], euro[13:], done}, false, euro + done, ""},
		{"two in one", []string{data("a") + data("b") + done}, false, data("a") + data("b") + done, ""},
		{"CR LF and comments", []string{": hi\r\n\r\n", "data: 1\r\n", "\r\n", "data: [DONE]\r\n\r\n"}, false, ": hi\r\n\r\ndata: 1\r\n\r\ndata: [DONE]\r\n\r\n", ""},
		{"huge chunk", []string{huge, done}, false, huge + done, ""},
		{"mark within content", []string{data("data: [DONE]"), data(`"error"`), done}, false, data("data: [DONE]") + data(`"error"`) + done, ""},
		{"last blank line missing", []string{data("a"), "data: [DONE]\n"}, false, data("a") + done, ""},
		{"more after the mark", []string{data("a"), done + data("b")}, false, data("a") + done, ""},
		{"reported error", []string{data("a"), reported}, false, data("a") + reported, ""},
		{"reported error, then the mark", []string{data("a"), reported, done}, false, data("a") + reported, ""},
		{"error event by name", []string{"event: error\ndata: oops\n\n", done}, false, "event: error\ndata: oops\n\n", ""},
		{"error null is no error", []string{`data: {"error":null}` + "\n\n", done}, false, `data: {"error":null}` + "\n\n" + done, ""},
		{"ended without the mark", []string{data("a")}, false, data("a"), "upstream_error"},
		{"ended in mid-frame", []string{data("a"), "data: {\"cho"}, false, data("a"), "upstream_error"},
		{"cut in mid-rune", []string{data("a"), euro[:13]}, true, data("a"), "upstream_error"},
		{"cut between frames", []string{data("a")}, true, data("a"), "upstream_error"},
		{"nothing", nil, true, "", "upstream_error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := withModel(t, func(w http.ResponseWriter, _ *http.Request) {
				s := streaming(w)
				s.send(append([]string{""}, tt.pieces...)...)
				if tt.cut {
					panic(http.ErrAbortHandler)
				}
			}, nil)
			got := f.complete(t, askStream)
			if got.status != 200 || got.header.Get("Content-Type") != "text/event-stream" || got.err != nil {
				t.Fatalf("got %d, %v, %v", got.status, got.header, got.err)
			}
			rest, ok := strings.CutPrefix(got.body, tt.want)
			if !ok {
				t.Fatalf("got %.300q, want %.300q", got.body, tt.want)
			}
			if tt.failed == "" {
				if rest != "" {
					t.Errorf("then came %q", rest)
				}
				return
			}
			if _, kind := openAIError(t, strings.TrimPrefix(rest, "data: ")); kind != tt.failed || strings.Contains(rest, "[DONE]") {
				t.Errorf("ends in %q", rest)
			}
		})
	}
}

// Each event arrives before the next one is sent.
func TestStreamIsNotHeldBack(t *testing.T) {
	next := make(chan struct{})
	f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
		s := streaming(w)
		s.send("")
		for i := range 3 {
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
			s.send(data(fmt.Sprint(i)))
		}
		s.send(done)
	}, nil)
	res := open(t, context.Background(), "POST", f.url+"/v1/chat/completions", askStream)
	defer res.Body.Close()
	for i := range 3 {
		next <- struct{}{}
		want := data(fmt.Sprint(i))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestStreamThatStalls(t *testing.T) {
	f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
		streaming(w).send(data("a"))
		<-r.Context().Done()
	}, func(c *chat.Config) { c.LLM.IdleTimeout = 100 * time.Millisecond })
	got := f.complete(t, askStream)
	rest, ok := strings.CutPrefix(got.body, data("a"))
	if message, _ := openAIError(t, strings.TrimPrefix(rest, "data: ")); !ok || !strings.Contains(message, "in time") {
		t.Errorf("got %q", got.body)
	}
}

func TestClientDisconnectCancelsUpstream(t *testing.T) {
	for name, body := range map[string]string{"plain": ask, "streaming": askStream} {
		t.Run(name, func(t *testing.T) {
			reached, cancelled := make(chan struct{}), make(chan struct{})
			f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
				if name == "streaming" {
					streaming(w).send(data("a"))
				}
				close(reached)
				<-r.Context().Done()
				close(cancelled)
			}, nil)
			ctx, cancel := context.WithCancel(context.Background())
			returned := make(chan struct{})
			go func() {
				defer close(returned)
				req, _ := http.NewRequestWithContext(ctx, "POST", f.url+"/v1/chat/completions", strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				if res, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}()
			receive(t, "the request", reached)
			left := time.Now()
			cancel()
			receive(t, "the cancellation", cancelled)
			t.Logf("cancelled after %v", time.Since(left))
			<-returned
		})
	}
}

func TestShutdownInMidStream(t *testing.T) {
	reached := make(chan struct{})
	f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
		streaming(w).send(data("a"))
		close(reached)
		<-r.Context().Done()
	}, nil)
	res := open(t, context.Background(), "POST", f.url+"/v1/chat/completions", askStream)
	defer res.Body.Close()
	receive(t, "the stream", reached)
	f.stop()
	got, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(got), "shutting_down") || strings.Contains(string(got), "[DONE]") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestMetrics(t *testing.T) {
	f := withModel(t, func(w http.ResponseWriter, _ *http.Request) { streaming(w).send(data("a"), done) }, nil)
	f.complete(t, askStream)
	f.stop()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			seen[family.GetName()] += m.GetHistogram().GetSampleCount()
		}
	}
	if seen["preheat_chat_first_byte_seconds"] != 1 || seen["preheat_chat_request_seconds"] != 1 {
		t.Errorf("got %v", seen)
	}
}

// BenchmarkStreamedChunk measures the way of one chunk from the model server to
// the client: straight, and through chat.
func BenchmarkStreamedChunk(b *testing.B) {
	next := make(chan struct{})
	upstream := func(w http.ResponseWriter, r *http.Request) {
		s := streaming(w)
		_ = s.Flush()
		for {
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
			_, _ = io.WriteString(s.ResponseWriter, data("token"))
			_ = s.Flush()
		}
	}
	for name, url := range map[string]string{"straight": serveHTTP(b, upstream), "through chat": withModel(b, upstream, nil).url} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			res := open(b, ctx, "POST", url+"/v1/chat/completions", askStream)
			defer res.Body.Close()
			got := make([]byte, len(data("token")))
			for b.Loop() {
				next <- struct{}{}
				if _, err := io.ReadFull(res.Body, got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
