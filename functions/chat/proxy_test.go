package chat_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat"
)

// inFrontOf serves a chat that passes everything on to another.
func inFrontOf(t *testing.T, url string) *front {
	t.Helper()
	o := chat.Options{Config: testConfig(), Forward: true}
	o.Config.ChatURL = url
	return serveChat(t, o)
}

// behind serves a chat in front of an execute function, and another before it.
func behind(t *testing.T, execute http.HandlerFunc) *front {
	t.Helper()
	return inFrontOf(t, withExecute(t, execute, nil).url)
}

func TestEverythingIsPassedOn(t *testing.T) {
	f := behind(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/limits":
			w.Header().Set("Content-Type", execution.MediaProblem)
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"status":503}`)
		case r.URL.Path == "/v1/languages":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"languages":[]}`)
		case r.Header.Get("Ce-Type") == execution.TypeRequested:
			completed(w, `{"stdout":"1\n"}`)
		default:
			t.Errorf("execute was asked for %s %s", r.Method, r.URL)
		}
	})
	if got := f.execute(t); got.status != 200 || got.body != `{"stdout":"1\n"}` || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("an execution: %+v", got)
	}
	if got := call(t, "GET", f.url+"/v1/languages", ""); got.status != 200 || got.body != `{"languages":[]}` {
		t.Errorf("the languages: %+v", got)
	}
	if got := call(t, "GET", f.url+"/v1/limits", ""); got.status != 503 || got.body != `{"status":503}` || got.header.Get("Retry-After") != "3" {
		t.Errorf("the limits: %+v", got)
	}
	if got := call(t, "GET", f.url+"/v1/chat/status", ""); got.status != 200 || !strings.Contains(got.body, `"demo":true`) {
		t.Errorf("the status: %+v", got)
	}
	if got := call(t, "GET", f.url+"/v1/models", ""); got.status != 200 || !strings.Contains(got.body, `"preheat-demo"`) {
		t.Errorf("the models: %+v", got)
	}
	question := `{"stream":true,"messages":[{"role":"user","content":"Hi"}]}`
	got := call(t, "POST", f.url+"/v1/chat/completions", question)
	if got.status != 200 || got.err != nil || !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
		t.Errorf("a question: %+v", got)
	}
	if got := call(t, "POST", f.url+"/v1/sandbox/execute", "[]"); got.status != 400 || got.header.Get("Content-Type") != execution.MediaProblem {
		t.Errorf("no request: %+v", got)
	}
	if got := call(t, "GET", f.url+"/v1/nothing", ""); got.status != 404 {
		t.Errorf("an unknown path: %+v", got)
	}
}

func TestPassedOnStreams(t *testing.T) {
	f := behind(t, func(w http.ResponseWriter, r *http.Request) {
		s := streaming(w)
		s.send(event("start", execution.Start{SandboxName: "s"}))
		if r.Header.Get("X-Request-Id") != "cut" {
			s.send(event("exit", execution.Exit{SandboxName: "s", Status: execution.StatusSucceeded}))
		}
	})
	for id, want := range map[string]string{"whole": `"succeeded"`, "cut": `"platform_error"`} {
		got := f.execute(t, "Accept", "text/event-stream", "X-Request-Id", id)
		if got.status != 200 || got.err != nil || strings.Count(got.body, "event: exit\n") != 1 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// Whoever stands in front of another chat sees to it that a stream that the
// other one did not end is told as broken off.
func TestAPassedOnStreamIsCut(t *testing.T) {
	f := inFrontOf(t, serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		s := streaming(w)
		if r.URL.Path == "/v1/chat/completions" {
			s.send("data: {}\n\n")
		} else {
			s.send(event("start", execution.Start{SandboxName: "s"}))
		}
	}))
	if got := f.execute(t, "Accept", "text/event-stream"); !strings.Contains(got.body, "event: exit\n") || !strings.Contains(got.body, `"platform_error"`) {
		t.Errorf("an execution: %+v", got)
	}
	got := call(t, "POST", f.url+"/v1/chat/completions", `{"stream":true,"messages":[]}`)
	if strings.Contains(got.body, "[DONE]") || !strings.Contains(got.body, `"error"`) {
		t.Errorf("a question: %+v", got)
	}
}

func TestNobodyToPassOnTo(t *testing.T) {
	f := inFrontOf(t, "http://127.0.0.1:1")
	if got := f.execute(t); got.status != 502 || got.header.Get("Content-Type") != execution.MediaProblem || strings.Contains(got.body, "127.0.0.1") {
		t.Errorf("an execution: %+v", got)
	}
	if got := call(t, "POST", f.url+"/v1/chat/completions", `{}`); got.status != 502 || !strings.Contains(got.body, `"error"`) {
		t.Errorf("a question: %+v", got)
	}
	proxy := inFrontOf(t, serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	if got := proxy.execute(t); got.status != 503 || got.header.Get("Content-Type") != execution.MediaProblem {
		t.Errorf("of a proxy: %+v", got)
	}
}

func TestPassingOnEndsWithTheClient(t *testing.T) {
	reached, cancelled := make(chan struct{}), make(chan struct{})
	f := behind(t, func(w http.ResponseWriter, r *http.Request) {
		streaming(w).send(event("start", execution.Start{}))
		close(reached)
		<-r.Context().Done()
		close(cancelled)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res := open(t, ctx, "POST", f.url+"/v1/sandbox/execute", program, "Accept", "text/event-stream")
	defer res.Body.Close()
	receive(t, "the request", reached)
	cancel()
	receive(t, "the cancellation", cancelled)
}

// Only what is below /v1 is passed on, however its path is written.
func TestNothingBesideTheInterfaceIsPassedOn(t *testing.T) {
	reached := make(chan string, 100)
	f := inFrontOf(t, serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		reached <- r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	for _, path := range []string{
		"/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "/v1/.%2e/metrics", "/v1/%2E%2E%2Fmetrics", "/v1/x/../../metrics",
		"/v1/%252e%252e/metrics", "/v1/..%5cmetrics", "/v1/./pools", "/v1//pools",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		_ = conn.Close()
	}
	if n := len(reached); n > 0 {
		t.Errorf("%d have been asked for, the first is %s", n, <-reached)
	}
	if got := call(t, "GET", f.url+"/v1/pools?x=%2e", ""); got.status != 200 || receive(t, "the request", reached) != "/v1/pools" {
		t.Errorf("a plain path: %+v", got)
	}
}
