package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/server"
	"github.com/preheat-dev/preheat/tests/openapi"
)

// keepingPool is a pool with one session.
type keepingPool struct {
	pool.Pool
	*keeping
}

// Status implements pool.Pool.
func (keepingPool) Status() []execution.PoolStatus { return nil }

// keeping is a session whose files are in memory.
type keeping struct {
	id      string
	ended   bool
	files   map[string]string
	written int64
	// onWrite is called with each piece of a file of which nothing is kept.
	onWrite func(total int64)
}

func (k keepingPool) Languages() []execution.Language {
	return []execution.Language{{Name: "python", Pools: []string{"small"}}}
}
func (k keepingPool) OpenSession(_ context.Context, want pool.SessionClaim) (pool.Session, error) {
	k.id = want.Session
	return k.keeping, nil
}
func (k keepingPool) Session(_ context.Context, id string) (pool.Session, error) {
	switch {
	case id != k.id:
		return nil, pool.ErrNoSession
	case k.ended:
		return nil, &pool.SessionEndedError{Reason: execution.SessionClosed}
	}
	return k.keeping, nil
}
func (k keepingPool) Sessions(context.Context) ([]pool.SessionInfo, error) { return nil, nil }
func (k keepingPool) EndSession(context.Context, string) error             { k.ended = true; return nil }

func (k *keeping) Info() pool.SessionInfo {
	return pool.SessionInfo{ID: k.id, Language: "python", Pool: "small", Sandbox: "small-1", Idle: time.Minute}
}
func (k *keeping) Status(context.Context) (pool.SessionStatus, error) {
	return pool.SessionStatus{Sequence: 2, IdleLeft: time.Second}, nil
}
func (k *keeping) Run(_ context.Context, id string, run pool.Run, sink pool.Sink) (pool.SessionOutcome, error) {
	if string(run.Code) == "busy" {
		return pool.SessionOutcome{}, &pool.BusyError{Running: "other"}
	}
	sink.Started()
	sink.Output(execution.Stdout, run.Code, 0)
	return pool.SessionOutcome{Outcome: pool.Outcome{Status: execution.StatusSucceeded}, State: execution.SessionKept, Sequence: 3}, nil
}
func (k *keeping) Interrupt(context.Context) error { return pool.ErrNothingRuns }
func (k *keeping) Files(_ context.Context, max int) (list []pool.SessionFile, more bool, err error) {
	for path, content := range k.files {
		list = append(list, file(path, content))
	}
	return list, false, nil
}
func file(path, content string) pool.SessionFile {
	return pool.SessionFile{Path: path, Size: int64(len(content)), Modified: time.Unix(1700000000, 0), ETag: fmt.Sprintf("%q", fmt.Sprint(len(content)))}
}
func (k *keeping) Open(_ context.Context, path string, offset, length int64) (pool.SessionFile, io.ReadCloser, error) {
	content, ok := k.files[path]
	if !ok {
		return pool.SessionFile{}, nil, pool.ErrNoFile
	}
	part := content[offset:]
	if length >= 0 {
		part = part[:min(length, int64(len(part)))]
	}
	return file(path, content), io.NopCloser(strings.NewReader(part)), nil
}
func (k *keeping) Archive(_ context.Context, path string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("tar of " + path)), nil
}
func (k *keeping) Write(_ context.Context, path string, content io.Reader) (pool.SessionFile, bool, error) {
	if k.onWrite != nil {
		piece := make([]byte, 64<<10)
		for {
			n, err := content.Read(piece)
			k.written += int64(n)
			k.onWrite(k.written)
			if err == io.EOF {
				return file(path, ""), true, nil
			}
			if err != nil {
				return pool.SessionFile{}, false, err
			}
		}
	}
	b, err := io.ReadAll(content)
	if err != nil {
		return pool.SessionFile{}, false, err
	}
	_, had := k.files[path]
	k.files[path] = string(b)
	return file(path, string(b)), !had, nil
}
func (k *keeping) Remove(_ context.Context, path string) error {
	if _, ok := k.files[path]; !ok {
		return pool.ErrNoFile
	}
	delete(k.files, path)
	return nil
}

// client sends requests to a server of sessions.
type client struct {
	t   *testing.T
	url string
	// document describes every response.
	document *openapi.Document
}

func serve(t *testing.T, k *keeping) client {
	t.Helper()
	limits := execution.DefaultLimits()
	log := slog.New(slog.DiscardHandler)
	web, err := server.New(server.Config{Logger: log, BodyLimit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	httpapi.New(execute.New(keepingPool{keeping: k}, limits, execute.NewMetrics(registry), log), nil, registry).Register(web.App())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(ctx, listener) })
	t.Cleanup(func() { stop(); serving.Wait() })
	document, err := openapi.Parse(execution.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return client{t, "http://" + listener.Addr().String(), document}
}

func (c client) do(method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.document.CheckResponse(method, path, res, b); err != nil {
		c.t.Error(err)
	}
	return res, string(b)
}

func (c client) open() string {
	c.t.Helper()
	res, body := c.do("POST", "/v1/sessions", strings.NewReader(`{"language":"python"}`), "Content-Type", "application/json")
	var s execution.Session
	if err := json.Unmarshal([]byte(body), &s); err != nil || res.StatusCode != http.StatusCreated || res.Header.Get("Location") != "/v1/sessions/"+s.ID {
		c.t.Fatalf("%s: %s", res.Status, body)
	}
	return "/v1/sessions/" + s.ID
}

func TestSessionRoutes(t *testing.T) {
	c := serve(t, &keeping{files: map[string]string{}})
	s := c.open()
	jsonType := []string{"Content-Type", "application/json"}
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		contains                 string
	}{
		{"describe", "GET", s, "", nil, 200, `"sequence":2`},
		{"list", "GET", "/v1/sessions", "", nil, 200, `"sessions":[]`},
		{"run", "POST", s + "/execute", `{"code":"1+1"}`, jsonType, 200, `"state":"kept","sequence":3}`},
		{"stream", "POST", s + "/execute", `{"code":"1+1"}`, append(jsonType, "Accept", "text/event-stream"), 200, `"state":"kept","sequence":3}`},
		{"run beside another one", "POST", s + "/execute", `{"code":"busy"}`, jsonType, 409, `"running":"other"`},
		{"stream beside another one", "POST", s + "/execute", `{"code":"busy"}`, append(jsonType, "Accept", "text/event-stream"), 409, `"running":"other"`},
		{"another language", "POST", s + "/execute", `{"code":"1","language":"cobol"}`, jsonType, 404, `"field":"language"`},
		{"no JSON", "POST", s + "/execute", `{`, jsonType, 400, "malformed"},
		{"no type", "POST", s + "/execute", `{}`, []string{"Content-Type", "text/plain"}, 415, "unsupported"},
		{"interrupt of nothing", "POST", s + "/interrupt", "", nil, 409, "nothing-runs"},
		{"too long idle", "POST", "/v1/sessions", `{"language":"python","idle_seconds":1e9}`, jsonType, 422, `"field":"idle_seconds"`},
		{"unknown field", "POST", "/v1/sessions", `{"language":"python","ttl":1}`, jsonType, 422, `"field":"ttl"`},
		{"unknown", "GET", "/v1/sessions/aaaaaaaaaaaaaaaaaaaaaaaaaa", "", nil, 404, "not-found"},
		{"no id", "GET", "/v1/sessions/1", "", nil, 404, "not-found"},
		{"close", "DELETE", s, "", nil, 204, ""},
		{"run after it", "POST", s + "/execute", `{"code":"1+1"}`, jsonType, 410, `"reason":"closed"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, body := c.do(test.method, test.path, strings.NewReader(test.body), test.headers...)
			if res.StatusCode != test.status || !strings.Contains(body, test.contains) {
				t.Errorf("%s: %s", res.Status, body)
			}
			if res.Header.Get("Cache-Control") != "no-store" && !strings.Contains(res.Header.Get("Content-Type"), "event-stream") && test.status < 204 {
				t.Errorf("Cache-Control is %q", res.Header.Get("Cache-Control"))
			}
		})
	}
}

func TestSessionFiles(t *testing.T) {
	c := serve(t, &keeping{files: map[string]string{"page.html": "<script>1</script>", "digits": "0123456789"}})
	s := c.open() + "/files"
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
		header, value            string
	}{
		{"whole", "GET", "/digits", "", nil, 200, "0123456789", "ETag", `"10"`},
		{"its length", "HEAD", "/digits", "", nil, 200, "", "Content-Length", "10"},
		{"a range", "GET", "/digits", "", []string{"Range", "bytes=2-4"}, 206, "234", "Content-Range", "bytes 2-4/10"},
		{"the end", "GET", "/digits", "", []string{"Range", "bytes=-3"}, 206, "789", "Content-Range", "bytes 7-9/10"},
		{"a range of this state", "GET", "/digits", "", []string{"Range", "bytes=2-4", "If-Range", `"10"`}, 206, "234", "", ""},
		{"a range of another state", "GET", "/digits", "", []string{"Range", "bytes=2-4", "If-Range", `"9"`}, 200, "0123456789", "", ""},
		{"beyond the end", "GET", "/digits", "", []string{"Range", "bytes=10-"}, 416, "", "Content-Range", "bytes */10"},
		{"not changed", "GET", "/digits", "", []string{"If-None-Match", `"10"`}, 304, "", "ETag", `"10"`},
		{"a page has no scripts", "GET", "/page.html", "", nil, 200, "<script>1</script>", "Content-Security-Policy", "sandbox; default-src 'none'"},
		{"a page is saved", "GET", "/page.html", "", nil, 200, "<script>1</script>", "Content-Disposition", "attachment; filename=page.html"},
		{"create", "PUT", "/data/Gr%C3%BC%C3%9Fe%20%2525.txt", "hello", nil, 201, "", "ETag", `"5"`},
		{"read it", "GET", "/data/Gr%C3%BC%C3%9Fe%20%2525.txt", "", nil, 200, "hello", "Content-Type", "text/plain"},
		{"replace", "PUT", "/digits", "01", []string{"If-Match", `"10"`}, 204, "", "ETag", `"2"`},
		{"replace what has changed", "PUT", "/digits", "x", []string{"If-Match", `"10"`}, 412, "", "", ""},
		{"create what is there", "PUT", "/digits", "x", []string{"If-None-Match", "*"}, 412, "", "", ""},
		{"out of the folder", "GET", "/..%2f..%2fetc%2fpasswd", "", nil, 422, "", "", ""},
		{"put out of the folder", "PUT", "/%2e%2e/x", "x", nil, 422, "", "", ""},
		{"absolute", "PUT", "/%2fetc%2fpasswd", "x", nil, 422, "", "", ""},
		{"with NUL", "DELETE", "/a%00b", "", nil, 422, "", "", ""},
		{"no UTF-8", "GET", "/%ff", "", nil, 422, "", "", ""},
		{"missing", "GET", "/missing", "", nil, 404, "", "", ""},
		{"a folder as tar", "GET", "/data?archive", "", nil, 200, "tar of data", "Content-Type", "application/x-tar"},
		{"all as tar", "GET", "", "", []string{"Accept", "application/x-tar"}, 200, "tar of ", "Content-Disposition", "attachment; filename=files.tar"},
		{"remove", "DELETE", "/digits", "", nil, 204, "", "", ""},
		{"remove again", "DELETE", "/digits", "", nil, 404, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, body := c.do(test.method, s+test.path, strings.NewReader(test.body), test.headers...)
			if res.StatusCode != test.status || test.status < 300 && body != test.want {
				t.Fatalf("%s: %s", res.Status, body)
			}
			if got := res.Header.Get(test.header); test.header != "" && got != test.value {
				t.Errorf("%s is %q", test.header, got)
			}
			if test.status >= 400 && res.Header.Get("Content-Type") != execution.MediaProblem {
				t.Errorf("the error is %s: %s", res.Header.Get("Content-Type"), body)
			}
		})
	}
}

// A file that is sent is nowhere in memory whole: the process grows by a small
// part of it.
func TestUploadIsStreamed(t *testing.T) {
	const size = 256 << 20
	var before, most uint64
	k := &keeping{onWrite: func(total int64) {
		if total%(16<<20) < 64<<10 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}}
	c := serve(t, k)
	s := c.open()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before = m.HeapAlloc
	res, body := c.do("PUT", s+"/files/large", io.LimitReader(zeros{}, size))
	if res.StatusCode != http.StatusCreated || k.written != size {
		t.Fatalf("%s after %d bytes: %s", res.Status, k.written, body)
	}
	if most > before && most-before > size/64 {
		t.Errorf("the heap grew by %d bytes for a file of %d", most-before, size)
	}
}

// One byte too many is refused, whatever its request says of the length.
func TestUploadIsBounded(t *testing.T) {
	k := &keeping{onWrite: func(int64) {}}
	c := serve(t, k)
	s := c.open()
	limit := execution.DefaultLimits().Sessions.FileBytes
	res, _ := c.do("PUT", s+"/files/large", struct{ io.Reader }{bytes.NewReader(nil)})
	if res.StatusCode != http.StatusCreated {
		t.Errorf("an empty file: %s", res.Status)
	}
	req, err := http.NewRequestWithContext(t.Context(), "PUT", c.url+s+"/files/large", io.LimitReader(zeros{}, limit+1))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = limit + 1
	req.Header.Set("Expect", "100-continue")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a file beyond the limit: %s", answer.Status)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
