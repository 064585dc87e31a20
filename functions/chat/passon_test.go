package chat_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat"
)

// inFrontOf serves a chat that passes everything on to another.
func inFrontOf(t *testing.T, url string) *front {
	t.Helper()
	o := chat.Options{Config: testConfig(), ForwardReads: true}
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
