package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/functions/chat"
)

type chunk struct {
	ID, Object, Model string
	Choices           []struct {
		Delta, Message struct{ Role, Content string }
		FinishReason   *string `json:"finish_reason"`
	}
	Usage *struct {
		Total int `json:"total_tokens"`
	}
}

func TestDemoModel(t *testing.T) {
	f := serveChat(t, chat.Options{Config: testConfig()})
	question := `"messages":[{"role":"user","content":[{"type":"text","text":"Write Python code that generates a random excuse for being late to a meeting"}]}]`

	var whole chunk
	got := f.complete(t, "{"+question+"}")
	if err := json.Unmarshal([]byte(got.body), &whole); err != nil || got.status != 200 {
		t.Fatalf("%v: %+v", err, got)
	}
	text := whole.Choices[0].Message.Content
	if whole.Object != "chat.completion" || whole.Model != "preheat-demo" || whole.Usage.Total == 0 || strings.Count(text, "```python\n") != 1 {
		t.Errorf("got %s", got.body)
	}

	got = f.complete(t, `{"stream":true,"stream_options":{"include_usage":true},`+question+"}")
	frames := strings.Split(strings.TrimSuffix(got.body, "\n\n"), "\n\n")
	if frames[len(frames)-1] != "data: [DONE]" || len(frames) < 50 {
		t.Fatalf("got %s", got.body)
	}
	var streamed strings.Builder
	var finish string
	var usage int
	for _, frame := range frames[:len(frames)-1] {
		var c chunk
		if err := json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &c); err != nil {
			t.Fatalf("%v in %s", err, frame)
		}
		if c.Object != "chat.completion.chunk" || c.Model != "preheat-demo" || c.ID == "" {
			t.Errorf("got %s", frame)
		}
		for _, choice := range c.Choices {
			streamed.WriteString(choice.Delta.Content)
			if choice.FinishReason != nil {
				finish += *choice.FinishReason
			}
		}
		if c.Usage != nil {
			usage = c.Usage.Total
		}
	}
	if streamed.String() != text || finish != "stop" || usage != whole.Usage.Total {
		t.Errorf("streamed %q, finish %q, usage %d", streamed.String(), finish, usage)
	}

	if got := call(t, "GET", f.url+"/v1/models", ""); !strings.Contains(got.body, `"id":"preheat-demo"`) || !strings.Contains(got.body, `"owned_by":"preheat"`) || !strings.Contains(got.body, `"demo":true`) {
		t.Errorf("models: %s", got.body)
	}
	if got := call(t, "GET", f.url+"/v1/chat/status", ""); got.body != `{"model":"preheat-demo","demo":true,"upstream":"none"}` {
		t.Errorf("status: %s", got.body)
	}
	for body, status := range map[string]int{`{}`: 400, `{"messages":[]}`: 400, `{"messages":7}`: 400, `{"messages":[{"content":7}]}`: 400, `{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}`: 404} {
		got := f.complete(t, body)
		if openAIError(t, got.body); got.status != status {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// modelServer lists one model until it is closed.
func modelServer(t *testing.T, name, owner string) (url string, alive *atomic.Bool) {
	alive = new(atomic.Bool)
	alive.Store(true)
	return serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if !alive.Load() || r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"owned_by":%q}]}`, name, owner)
	}), alive
}

// probed lets f look for model servers until its status is want.
func probed(t *testing.T, f *front, want string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.chat.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer wg.Wait()
	defer cancel()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got := call(t, "GET", f.url+"/v1/chat/status", "").body
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the status is %s, not %s", got, want)
		}
	}
}

func TestDiscovery(t *testing.T) {
	demo := `{"model":"preheat-demo","demo":true,"upstream":"none"}`
	first, alive := modelServer(t, "llama", "library")
	second, _ := modelServer(t, "qwen", "library")
	other, _ := modelServer(t, "preheat-demo", "preheat")
	page := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<h1>hi</h1>") })
	o := chat.Options{Config: testConfig(), Local: []string{"http://127.0.0.1:1", page, other, first, second}}
	o.Config.LLM.Discover = true
	f := serveChat(t, o)
	probed(t, f, `{"model":"llama","demo":false,"upstream":"discovered"}`)
	if got := call(t, "GET", f.url+"/v1/models", ""); !strings.Contains(got.body, "llama") {
		t.Errorf("models: %s", got.body)
	}
	alive.Store(false)
	probed(t, f, `{"model":"qwen","demo":false,"upstream":"discovered"}`)

	alone := chat.Options{Config: testConfig(), Local: []string{first}}
	alone.Config.LLM.Discover = true
	alone.Config.LLM.Model = "mine"
	f = serveChat(t, alone)
	alive.Store(true)
	probed(t, f, `{"model":"mine","demo":false,"upstream":"discovered"}`)
	alive.Store(false)
	probed(t, f, demo)
}

// The configured key is for the configured server: one that was only found on
// this machine never sees it, nor what a client authorizes itself with.
func TestKeyIsForTheConfiguredServer(t *testing.T) {
	authorized := make(chan string, 100)
	models := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		authorized <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"llama","owned_by":"library"}]}`)
	})
	for name, test := range map[string]struct{ url, want string }{"found": {"", ""}, "configured": {models, "Bearer k"}} {
		o := chat.Options{Config: testConfig(), Local: []string{models}}
		o.Config.LLM.Discover, o.Config.LLM.APIKey, o.Config.LLM.ForwardAuthorization, o.Config.LLM.URL = true, "k", true, test.url
		f := serveChat(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = f.chat.Run(ctx) })
		if got := receive(t, "the look at it", authorized); got != test.want {
			t.Errorf("%s: the look has authorization %q, want %q", name, got, test.want)
		}
		known := func() bool { return strings.Contains(call(t, "GET", f.url+"/v1/chat/status", "").body, "llama") }
		for end := time.Now().Add(patience); !known() && time.Now().Before(end); time.Sleep(time.Millisecond) {
			continue
		}
		call(t, "GET", f.url+"/v1/models", "", "Authorization", "Bearer mine")
		if got := receive(t, "the question", authorized); got != test.want {
			t.Errorf("%s: a question has authorization %q, want %q", name, got, test.want)
		}
		cancel()
		wg.Wait()
	}
}

func TestDiscoveryPassesItselfBy(t *testing.T) {
	var f *front
	refused := make(chan int, 100)
	self := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		// The same process under another address, once it has a model.
		req, err := http.NewRequestWithContext(r.Context(), r.Method, f.url+r.URL.Path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("X-Preheat-Via", r.Header.Get("X-Preheat-Via"))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return // The probe was cancelled.
		}
		defer res.Body.Close()
		refused <- res.StatusCode
		w.WriteHeader(res.StatusCode)
	})
	real, _ := modelServer(t, "llama", "library")
	o := chat.Options{Config: testConfig(), Local: []string{self, real}}
	o.Config.LLM.Discover = true
	f = serveChat(t, o)
	probed(t, f, `{"model":"llama","demo":false,"upstream":"discovered"}`)
	if status := receive(t, "the look at itself", refused); status != http.StatusLoopDetected {
		t.Errorf("asked itself: %d", status)
	}
	// Now it has a model to offer.
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.chat.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	if status := receive(t, "the look at itself", refused); status != http.StatusLoopDetected {
		t.Errorf("asked itself: %d", status)
	}
}

func TestModelOfAConfiguredServer(t *testing.T) {
	url, _ := modelServer(t, "llama", "library")
	o := chat.Options{Config: testConfig()}
	o.Config.LLM.URL = url + "/v1/"
	f := serveChat(t, o)
	if got := call(t, "GET", f.url+"/v1/chat/status", ""); got.body != `{"model":"","demo":false,"upstream":"configured"}` {
		t.Errorf("status: %s", got.body)
	}
	probed(t, f, `{"model":"llama","demo":false,"upstream":"configured"}`)
}

func TestPage(t *testing.T) {
	f := serveChat(t, chat.Options{Config: testConfig(), Page: testPage})
	for _, tt := range []struct{ path, media, cache string }{
		{"/", "text/html; charset=utf-8", "no-cache"},
		{"/index.html", "text/html; charset=utf-8", "no-cache"},
		{"/assets/index-B1cD2eF3.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"/favicon.svg", "image/svg+xml", "no-cache"},
	} {
		got := call(t, "GET", f.url+tt.path, "")
		h := got.header
		if got.status != 200 || h.Get("Content-Type") != tt.media || h.Get("Cache-Control") != tt.cache || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") == "" {
			t.Errorf("%s: %+v", tt.path, got)
		}
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "script-src 'self';") || !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%s: policy %q", tt.path, csp)
		}
		again := call(t, "GET", f.url+tt.path, "", "If-None-Match", `"x", W/`+h.Get("Etag"))
		if again.status != 304 || again.body != "" {
			t.Errorf("%s again: %+v", tt.path, again)
		}
	}
	for _, path := range []string{"/.gitkeep", "/assets/", "/assets/../index.htm", "/nothing"} {
		if got := call(t, "GET", f.url+path, ""); got.status != 404 {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := call(t, "GET", serveChat(t, chat.Options{Config: testConfig()}).url+"/", ""); got.status != 200 || !strings.Contains(got.body, "not part of this build") {
		t.Errorf("without a page: %+v", got)
	}
}

func TestConfigFromEnv(t *testing.T) {
	c, err := chat.ConfigFromEnv()
	if err != nil || !c.LLM.Discover || c.LLM.FirstByteTimeout != 5*time.Minute || c.EventSource != "/preheat/chat" {
		t.Errorf("defaults: %+v, %v", c, err)
	}
	for name, value := range map[string]string{
		"PREHEAT_LLM_URL": "ftp://user:hunter2@x", "PREHEAT_LLM_DISCOVER": "hunter2", "PREHEAT_LLM_IDLE_TIMEOUT": "hunter2",
		"PREHEAT_LLM_FIRST_BYTE_TIMEOUT": "-1s", "PREHEAT_LLM_API_KEY": "hunter2\nX: y", "PREHEAT_EXECUTE_URL": "hunter2", "PREHEAT_CHAT_URL": "hunter2",
		"PREHEAT_EXECUTE_TIMEOUT": "0s", "PREHEAT_EVENT_SOURCE": "%", "PREHEAT_REFUSAL_LIMIT": "-5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if _, err := chat.ConfigFromEnv(); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Setenv("PREHEAT_LLM_API_KEY", "sk-secret")
	t.Setenv("PREHEAT_LLM_URL", "https://llm.example/api")
	c, err = chat.ConfigFromEnv()
	if err != nil || c.LLM.APIKey != "sk-secret" {
		t.Fatalf("%+v, %v", c, err)
	}
	encoded, err := json.Marshal(c)
	if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, encoded); err != nil || strings.Contains(text, "sk-secret") {
		t.Errorf("the key shows: %s, %v", text, err)
	}
}
