package chat_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/functions/chat"
)

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"method": %q, "uri": %q, "key": %q, "body": %q}`, r.Method, r.RequestURI, r.Header.Get("Authorization"), body)
}

func withKey(c *chat.Config) { c.LLM.APIKey = "secret" }

// What no route takes below /v1 goes to the model server as it came.
func TestOtherPathsPassThrough(t *testing.T) {
	f := withModel(t, echo, nil)
	for _, test := range []struct{ method, path, body string }{
		{"POST", "/v1/embeddings", `{"input": "a"}`},
		{"POST", "/v1/responses", `{"input": "a"}`},
		{"GET", "/v1/responses/resp_1/input_items?limit=2&after=a%20b", ""},
		{"DELETE", "/v1/responses/resp_1", ""},
		{"GET", "/v1/files", ""},
	} {
		got := call(t, test.method, f.url+test.path, test.body)
		if want := fmt.Sprintf(`{"method": %q, "uri": %q, "key": "", "body": %q}`, test.method, test.path, test.body); got.status != 200 || got.body != want {
			t.Errorf("%s %s: %d %s", test.method, test.path, got.status, got.body)
		}
	}
}

// What is Preheat's own is never the model server's, and neither is what is not
// below /v1 once somebody has resolved it.
func TestOwnPathsDoNotPassThrough(t *testing.T) {
	f := withModel(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the model server was asked for %s", r.RequestURI)
	}, nil)
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/sandbox/execute", 405}, {"GET", "/v1/chat/completions", 405}, {"POST", "/v1/models", 405}, {"PUT", "/v1/embeddings", 404},
		{"POST", "/v1/sandbox/other", 404}, {"GET", "/v1/sessions/1", 404}, {"GET", "/v1/Sessions/1", 404}, {"DELETE", "/v1/functions/1", 404},
		{"GET", "/v1/../metrics", 404}, {"GET", "/v1/%2e%2e/metrics", 404}, {"GET", "/v1/a/..%2f..%2fmetrics", 404}, {"GET", "/v1/a/../../metrics", 404},
		{"GET", "/v1//metrics", 404}, {"GET", `/v1/a%5c..%5cmetrics`, 404}, {"GET", "/v1", 404}, {"GET", "/v1/", 404}, {"GET", "/v1/.", 404}, {"GET", "/v2/embeddings", 404},
	} {
		got := call(t, test.method, f.url+test.path, "")
		if got.status != test.status {
			t.Errorf("%s %s: status %d: %s", test.method, test.path, got.status, got.body)
		}
		openAIError(t, got.body)
	}
	none := serveChat(t, chat.Options{Config: testConfig()})
	if got := call(t, "POST", none.url+"/v1/embeddings", `{}`); got.status != 404 {
		t.Errorf("without a model server: %d %s", got.status, got.body)
	}
}

// The configured key asks models, and does nothing else to its account.
func TestKeyIsForModelsOnly(t *testing.T) {
	f := withModel(t, echo, withKey)
	if got := call(t, "POST", f.url+"/v1/embeddings", `{}`); !strings.Contains(got.body, `"Bearer secret"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, path := range []string{"/v1/files", "/v1/organization/admin_api_keys", "/v1/fine_tuning/jobs", "/v1/chat/completions/1", "/v1/batches"} {
		if got := call(t, "GET", f.url+path, ""); got.status != 403 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := call(t, "DELETE", f.url+"/v1/models/one", ""); got.status != 405 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Answers keep their media type, status and end; a document that a browser
// would show is none of a model server.
func TestAnswersPassThrough(t *testing.T) {
	const stream = "event: response.created\ndata: {\"type\": \"response.created\"}\n\nevent: response.completed\ndata: {}\n\n"
	f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
		switch name := strings.TrimPrefix(r.URL.Path, "/v1/responses/"); name {
		case "stream", "cut":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, stream)
			if name == "cut" {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		case "page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<script>alert(1)</script>")
		case "speech":
			w.Header().Set("Content-Type", "audio/mpeg")
			_, _ = w.Write([]byte{0xff, 0xfb, 0})
		case "gone":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, `{"error": {"message": "m"}}`)
		}
	}, nil)
	for name, want := range map[string]struct {
		status      int
		media, body string
	}{
		"stream": {200, "text/event-stream", stream}, "speech": {200, "audio/mpeg", "\xff\xfb\x00"}, "gone": {204, "", ""},
		"other": {418, "application/json", `{"error": {"message": "m"}}`},
	} {
		got := call(t, "GET", f.url+"/v1/responses/"+name, "")
		if got.status != want.status || !strings.HasPrefix(got.header.Get("Content-Type"), want.media) || got.body != want.body || got.err != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := call(t, "GET", f.url+"/v1/responses/cut", ""); got.err == nil {
		t.Errorf("a stream that broke off looks complete: %q", got.body)
	}
	if got := call(t, "GET", f.url+"/v1/responses/page", ""); got.status != 502 || strings.Contains(got.body, "<script>") || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", got)
	}
}

func TestModelByID(t *testing.T) {
	f := withModel(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			t.Errorf("%s was asked for", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object": "list", "data": [{"id": "one", "x": 1}, {"id": "org/two", "object": "model"}]}`)
	}, nil)
	for _, path := range []string{"/v1/models/org/two", "/v1/models/org%2Ftwo"} {
		if got := call(t, "GET", f.url+path, ""); got.status != 200 || got.body != `{"id": "org/two", "object": "model"}` {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, url := range []string{f.url, serveChat(t, chat.Options{Config: testConfig()}).url} {
		got := call(t, "GET", url+"/v1/models/three", "")
		if _, kind := openAIError(t, got.body); got.status != 404 || kind != "invalid_request_error" || !strings.Contains(got.body, `"code":"model_not_found"`) || !strings.Contains(got.body, `"param":"model"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	demo := serveChat(t, chat.Options{Config: testConfig()})
	if got := call(t, "GET", demo.url+"/v1/models/preheat-demo", ""); got.status != 200 || !strings.Contains(got.body, `"id":"preheat-demo"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}
