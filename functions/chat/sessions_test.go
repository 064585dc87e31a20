package chat_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat"
)

const aSession = "/v1/sessions/abcdefghijklmnopqrstuvwxyz"

// fronts are both ways to execute: a chat, and a chat in front of that.
func fronts(t *testing.T, execute http.HandlerFunc) map[string]*front {
	s := httptest.NewServer(execute)
	t.Cleanup(s.Close)
	o := chat.Options{Config: testConfig(), Forward: true}
	o.Config.ExecuteURL = s.URL
	one := serveChat(t, o)
	return map[string]*front{"chat": one, "chat in front of chat": inFrontOf(t, one.url)}
}

// What is asked of a session comes to execute as it was asked, and the answer
// comes back with its status and headers.
func TestSessionRequestsAreForwarded(t *testing.T) {
	said := map[string]string{
		"Content-Type": "text/html", "ETag": `"1"`, "Content-Disposition": "attachment", "Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff",
		"Accept-Ranges": "bytes", "Content-Range": "bytes 0-1/2", "Location": "/x", "Cache-Control": "no-store",
	}
	for name, f := range fronts(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for name, value := range said {
			w.Header().Set(name, value)
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Range"), r.Header.Get("If-Match"), body)
	}) {
		for _, test := range []struct {
			method, path, body string
			want               string
		}{
			{"POST", "/v1/sessions", "{}", "/v1/sessions"},
			{"GET", "/v1/sessions", "", "/v1/sessions"},
			{"GET", aSession, "", aSession},
			{"DELETE", aSession, "", aSession},
			{"POST", aSession + "/execute", "{}", aSession + "/execute"},
			{"POST", aSession + "/interrupt", "", aSession + "/interrupt"},
			{"GET", aSession + "/files?archive", "", aSession + "/files?archive"},
			{"GET", aSession + "/files/a%2Fb/Gr%C3%BC%C3%9Fe%20%2525.txt", "", aSession + "/files/a/b/Gr%C3%BC%C3%9Fe%20%2525.txt"},
			{"PUT", aSession + "/files/a", "content", aSession + "/files/a"},
			{"DELETE", aSession + "/files/a", "", aSession + "/files/a"},
			{"GET", "/v1/sessions/short", "", ""},
			{"GET", aSession + "/files/..%2f..%2fx", "", ""},
			{"PUT", aSession + "/files/%2e%2e/x", "x", ""},
		} {
			t.Run(name+"/"+test.method+test.path, func(t *testing.T) {
				got := call(t, test.method, f.url+test.path, test.body, "Range", "bytes=0-1", "If-Match", `"1"`)
				if test.want == "" {
					if got.status != 404 && got.status != 422 || got.header.Get("Content-Type") != execution.MediaProblem {
						t.Errorf("%+v", got)
					}
					return
				}
				if want := fmt.Sprintf("%s %s bytes=0-1 \"1\" %s", test.method, test.want, test.body); got.status != 206 || got.body != want || got.err != nil {
					t.Errorf("%d: %s instead of %s", got.status, got.body, want)
				}
				for name, value := range said {
					if got.header.Get(name) != value {
						t.Errorf("%s is %q", name, got.header.Get(name))
					}
				}
				if got.header.Get("Set-Cookie") != "" {
					t.Error("a cookie came through")
				}
			})
		}
	}
}

// Execute's refusals keep their status, and a range's its length.
func TestSessionRefusalsAreForwarded(t *testing.T) {
	for name, f := range fronts(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", execution.MediaProblem)
		w.Header().Set("Content-Range", "bytes */3")
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		_, _ = io.WriteString(w, `{"status":416}`)
	}) {
		got := call(t, "GET", f.url+aSession+"/files/a", "")
		if got.status != 416 || got.body != `{"status":416}` || got.header.Get("Content-Range") != "bytes */3" {
			t.Errorf("%s: %+v", name, got)
		}
		if got := call(t, "HEAD", f.url+aSession+"/files/a", ""); got.status != 416 || got.body != "" {
			t.Errorf("%s: HEAD: %+v", name, got)
		}
	}
}

// A file that breaks off on its way breaks off at the client, too, and never
// looks whole.
func TestSessionFilesThatBreakOff(t *testing.T) {
	part := strings.Repeat("part", 64<<10)
	for name, f := range fronts(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == aSession+"/files" { // no length is known
			_, _ = io.WriteString(w, part)
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Length", fmt.Sprint(2*len(part)))
		_, _ = io.WriteString(w, part)
	}) {
		for _, path := range []string{"/files?archive", "/files/a"} {
			if got := call(t, "GET", f.url+aSession+path, ""); got.err == nil {
				t.Errorf("%s: %s: %+v", name, path, got)
			}
		}
	}
}

// The streams of runs end in a terminal event of sessions when they break off.
func TestSessionStreamsThatBreakOff(t *testing.T) {
	for name, f := range fronts(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s := streaming(w)
		s.send(event("start", execution.Start{SandboxName: "s"}))
		panic(http.ErrAbortHandler)
	}) {
		got := call(t, "POST", f.url+aSession+"/execute", `{"code":"1"}`, "Accept", "text/event-stream")
		if got.err != nil || !strings.Contains(got.body, `"status":"platform_error"`) || !strings.Contains(got.body, `"state":null,"sequence":null`) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What execute refuses unread is not sent: the client gets the refusal, however
// large its file is.
func TestRefusedUploadsAreNotSent(t *testing.T) {
	for name, f := range fronts(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", execution.MediaProblem)
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, `{"status":412}`)
	}) {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", f.url+aSession+"/files/a", io.LimitReader(zeros{}, 1<<40))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusPreconditionFailed {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
}

// An upload that breaks off at the client is none that execute takes for whole.
func TestUploadsThatBreakOff(t *testing.T) {
	ends := make(chan error, 2)
	for _, f := range fronts(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		ends <- err
	}) {
		reader, writer := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "PUT", f.url+aSession+"/files/a", reader)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = writer.Write(make([]byte, 1<<20))
			_ = writer.CloseWithError(io.ErrUnexpectedEOF)
		}()
		if _, err := http.DefaultClient.Do(req); err == nil {
			t.Error("the request was answered")
		}
		if err := receive(t, "the end of the upload", ends); err == nil {
			t.Error("execute took a part for the whole")
		}
	}
}

// Files in both directions are nowhere in memory whole: the process, which is
// client, both chats and execute here, grows by a small part of a file.
func TestSessionFilesAreStreamed(t *testing.T) {
	const size = 256 << 20
	var most atomic.Uint64
	measure := func() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most.Store(max(most.Load(), m.HeapAlloc))
	}
	var got atomic.Int64
	f := fronts(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.Copy(w, io.LimitReader(zeros{}, size))
			return
		}
		n, _ := io.Copy(&measuring{each: 32 << 20, measure: measure}, r.Body)
		got.Store(n)
		w.WriteHeader(http.StatusCreated)
	})["chat in front of chat"]
	measure()
	before := most.Load()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", f.url+aSession+"/files/a", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusCreated || got.Load() != size {
		t.Errorf("%s, %d bytes", res.Status, got.Load())
	}
	down := open(t, t.Context(), "GET", f.url+aSession+"/files/a", "")
	defer func() { _ = down.Body.Close() }()
	if n, err := io.Copy(&measuring{each: 32 << 20, measure: measure}, down.Body); n != size || err != nil || down.ContentLength != size {
		t.Errorf("%d bytes of %d, %v", n, down.ContentLength, err)
	}
	if grown := int64(most.Load()) - int64(before); grown > size/64 {
		t.Errorf("the heap grew by %d bytes for a file of %d", grown, size)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// measuring calls measure after each so many bytes.
type measuring struct {
	each, n int64
	measure func()
}

func (m *measuring) Write(p []byte) (int, error) {
	before := m.n / m.each
	if m.n += int64(len(p)); m.n/m.each != before {
		m.measure()
	}
	return len(p), nil
}
