package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat"
)

const program = `{"language":"python",  "code":"print(1)"}`

func (f *front) execute(t *testing.T, header ...string) answer {
	t.Helper()
	return call(t, "POST", f.url+"/v1/sandbox/execute", program, header...)
}

// completed answers as execute does.
func completed(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Ce-Specversion", "1.0")
	w.Header().Set("Ce-Type", execution.TypeCompleted)
	w.Header().Set("Ce-Id", "2")
	w.Header().Set("Ce-Source", "/preheat/execute")
	_, _ = io.WriteString(w, body)
}

func TestExecuteIsAnEvent(t *testing.T) {
	type seen struct {
		id, source, kind, media, data, path string
		header                              http.Header
	}
	events := make(chan seen, 1)
	f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
		e, err := cehttp.NewEventFromHTTPRequest(r)
		if err != nil || e.Validate() != nil {
			t.Errorf("not an event: %v, %v", err, e)
			return
		}
		events <- seen{e.ID(), e.Source(), e.Type(), e.DataContentType(), string(e.Data()), r.URL.Path, r.Header}
		completed(w, `{"stdout":"1\n"}`)
	}, nil)
	got := f.execute(t, "Traceparent", "00-1-2-01")
	if got.status != 200 || got.body != `{"stdout":"1\n"}` || got.header.Get("Content-Type") != "application/json" || got.header.Get("Ce-Type") != "" {
		t.Errorf("got %+v", got)
	}
	e := <-events
	id := got.header.Get("X-Request-Id")
	if e.id != id || e.source != "/test" || e.kind != execution.TypeRequested || e.media != "application/json" || e.data != program || e.path != "/" {
		t.Errorf("the event is %+v", e)
	}
	if e.header.Get("X-Request-Id") != id || e.header.Get("Traceparent") != "00-1-2-01" || e.header.Get("Accept") == "text/event-stream" {
		t.Errorf("its header is %v", e.header)
	}

	// An id of the client's choice names the request, but not the event:
	// execute would answer a second use with the first one's result.
	got = f.execute(t, "X-Request-Id", "mine")
	if e = <-events; e.id == "mine" || e.id == "" || e.header.Get("X-Request-Id") != "mine" || got.header.Get("X-Request-Id") != "mine" {
		t.Errorf("the event is %+v", e)
	}
}

func TestExecuteRefusals(t *testing.T) {
	own := `{"type":"urn:preheat:problem:no-sandbox","title":"t","status":429,"detail":"d","partial":{"stdout":"x"}}`
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter)
		status int
		kind   execution.ProblemType
		body   string
	}{
		{"problem", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", execution.MediaProblem)
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(429)
			_, _ = io.WriteString(w, own)
		}, 429, execution.ProblemNoSandbox, own},
		{"proxy, 503", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3")
			http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
		}, 503, execution.ProblemNotReady, ""},
		{"proxy, 504", func(w http.ResponseWriter) { http.Error(w, "timeout", http.StatusGatewayTimeout) }, 504, execution.ProblemDeadline, ""},
		{"proxy, 404", func(w http.ResponseWriter) { http.Error(w, "no route", http.StatusNotFound) }, 502, execution.ProblemUpstream, ""},
		{"page", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<h1>hi</h1>") }, 502, execution.ProblemUpstream, ""},
		{"JSON that is no event", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"stdout":"","exit_code":0}`)
		}, 502, execution.ProblemUpstream, ""},
		{"redirect", func(w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(307)
		}, 502, execution.ProblemUpstream, ""},
		{"too large", func(w http.ResponseWriter) { http.Error(w, strings.Repeat("x", 2<<20), http.StatusTooManyRequests) }, 502, execution.ProblemUpstream, ""},
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			t.Run(tt.name+" "+accept, func(t *testing.T) {
				f := withExecute(t, func(w http.ResponseWriter, _ *http.Request) { tt.answer(w) }, nil)
				got := f.execute(t, "Accept", accept)
				var p execution.Problem
				if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.header.Get("Content-Type") != execution.MediaProblem {
					t.Fatalf("not a problem: %+v", got)
				}
				if got.status != tt.status || !p.IsKind(tt.kind) || tt.body != "" && got.body != tt.body {
					t.Errorf("got %d %s", got.status, got.body)
				}
				if tt.status == 429 || tt.status == 503 {
					if got.header.Get("Retry-After") != "3" {
						t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
					}
				}
			})
		}
	}
	t.Run("silent", func(t *testing.T) {
		for name, limits := range map[string]string{"whose limits are known": `{"queue_seconds":0.01,"maximum":{"timeout_seconds":0.01}}`, "whose limits are not": ""} {
			t.Run(name, func(t *testing.T) {
				f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path != "/v1/limits":
						<-r.Context().Done()
					case limits == "":
						w.WriteHeader(http.StatusServiceUnavailable)
					default:
						_, _ = io.WriteString(w, limits)
					}
				}, func(c *chat.Config) { c.ExecuteTimeout = 50 * time.Millisecond })
				if got := f.execute(t); got.status != 504 {
					t.Errorf("got %+v", got)
				}
			})
		}
	})
	t.Run("unreachable", func(t *testing.T) {
		if got := serveChat(t, chat.Options{Config: testConfig()}).execute(t); got.status != 502 || strings.Contains(got.body, "127.0.0.1") {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("form", func(t *testing.T) {
		f := withExecute(t, func(http.ResponseWriter, *http.Request) { t.Error("execute was asked") }, nil)
		if got := f.execute(t, "Content-Type", "text/plain"); got.status != 415 {
			t.Errorf("got %+v", got)
		}
	})
}

// TestExecutionAsLongAsExecuteAllows answers after the time that chat itself
// allows: once chat has read, at the second try, that execute allows more.
func TestExecutionAsLongAsExecuteAllows(t *testing.T) {
	limits := execution.DefaultLimits()
	limits.Maximum.TimeoutSeconds = 1e6
	for _, through := range []string{"execute", "another chat"} {
		t.Run(through, func(t *testing.T) {
			tries, read := 0, make(chan struct{})
			f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/limits" {
					select {
					case <-read:
					case <-r.Context().Done():
					}
					completed(w, `{"stdout":"1\n"}`)
					return
				}
				if tries++; tries == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				_ = json.NewEncoder(w).Encode(limits)
				close(read)
			}, func(c *chat.Config) {
				c.ExecuteTimeout = 50 * time.Millisecond
				if through != "execute" {
					c.ChatURL, c.ExecuteURL = c.ExecuteURL, "http://127.0.0.1:1"
				}
			})
			if got := f.execute(t); got.status != 200 || got.body != `{"stdout":"1\n"}` {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestLargestResult sends the result of a program that wrote control characters
// to the documented maximum of both streams, and files.
func TestLargestResult(t *testing.T) {
	const pieces = 224
	piece := strings.Repeat(`\u0001`, 1<<20/6)
	f := withExecute(t, func(w http.ResponseWriter, _ *http.Request) {
		completed(w, `{"stdout":"`)
		for range pieces {
			_, _ = io.WriteString(w, piece)
		}
		_, _ = io.WriteString(w, `"}`)
	}, nil)
	res, err := http.Post(f.url+"/v1/sandbox/execute", "application/json", strings.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	want := int64(len(`{"stdout":""}`) + pieces*len(piece))
	if err != nil || res.StatusCode != 200 || n != want {
		t.Errorf("status %d, %d of %d bytes, %v", res.StatusCode, n, want, err)
	}
}

// TestCutResult checks that a result that broke off never looks complete.
func TestCutResult(t *testing.T) {
	f := withExecute(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		completed(w, `{"stdout":`)
	}, nil)
	res, err := http.Post(f.url+"/v1/sandbox/execute", "application/json", strings.NewReader(program))
	if err != nil {
		return // before the head
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err == nil && res.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d and a whole body", res.StatusCode)
	}
}

func event(name string, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, b)
}

// exits decodes the exit events of a stream.
func exits(t *testing.T, stream string) (all []execution.Exit) {
	t.Helper()
	for frame := range strings.SplitSeq(stream, "\n\n") {
		data, ok := strings.CutPrefix(frame, "event: exit\ndata: ")
		if !ok {
			continue
		}
		var e execution.Exit
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		all = append(all, e)
	}
	return all
}

func TestExecuteStream(t *testing.T) {
	start := event("start", execution.Start{SandboxName: "box-1", Language: "python"})
	out := event("stdout", execution.Output{Data: "€\n", Encoding: "utf-8"})
	result := execution.Result{SandboxName: "box-1", Status: execution.StatusSucceeded, Notes: []string{}}
	exit := event("exit", result.Exit())
	artifact := event("artifact", execution.Artifact{Path: "a", Content: strings.Repeat("x", 20<<20)})
	for _, tt := range []struct {
		name   string
		pieces []string
		cut    bool
		want   string
		broken bool
	}{
		{"complete", []string{start, out, exit}, false, start + out + exit, false},
		{"byte by byte", strings.Split(start+out+exit, ""), false, start + out + exit, false},
		{"large artifact", []string{start, artifact, exit}, false, start + artifact + exit, false},
		{"more after the exit", []string{start, exit + out + exit}, false, start + exit, false},
		{"ends without exit", []string{start, out}, false, start + out, true},
		{"cut in mid-rune", []string{start, out[:30]}, true, start, true},
		{"cut in the exit", []string{start, out, exit[:20]}, true, start + out, true},
		{"cut before the exit's blank line", []string{start, exit[:len(exit)-1]}, true, start, true},
		{"nothing", nil, true, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("Ce-Type") != execution.TypeRequested {
					t.Errorf("asked by %v", r.Header)
				}
				streaming(w).send(append([]string{""}, tt.pieces...)...)
				if tt.cut {
					panic(http.ErrAbortHandler)
				}
			}, nil)
			got := f.execute(t, "Accept", "text/event-stream")
			if got.status != 200 || got.err != nil || got.header.Get("X-Accel-Buffering") != "no" || got.header.Get("Cache-Control") != "no-cache, no-transform" {
				t.Fatalf("got %d %v %v", got.status, got.header, got.err)
			}
			if !strings.HasPrefix(got.body, tt.want) || !tt.broken && got.body != tt.want {
				t.Fatalf("got %.300q, want %.300q", got.body, tt.want)
			}
			all := exits(t, got.body)
			if len(all) != 1 || !strings.Contains(got.body[len(got.body)-2:], "\n\n") {
				t.Fatalf("%d terminal events in %.300q", len(all), got.body)
			}
			if !tt.broken {
				return
			}
			e := all[0]
			if e.Status != execution.StatusPlatformError || e.ExitCode != nil || e.Problem == nil || e.Problem.RequestID != got.header.Get("X-Request-Id") || e.Notes == nil {
				t.Errorf("got %+v", e)
			}
			if strings.Contains(tt.want, "box-1") && e.SandboxName != "box-1" {
				t.Errorf("sandbox %q", e.SandboxName)
			}
		})
	}
}

func TestExecuteStreamAtShutdown(t *testing.T) {
	reached := make(chan struct{})
	f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
		streaming(w).send(event("start", execution.Start{SandboxName: "box-1"}))
		close(reached)
		<-r.Context().Done()
	}, nil)
	res := open(t, context.Background(), "POST", f.url+"/v1/sandbox/execute", program, "Accept", "text/event-stream")
	defer res.Body.Close()
	receive(t, "the stream", reached)
	f.stop()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if all := exits(t, string(got)); len(all) != 1 || all[0].Status != execution.StatusPlatformError || !all[0].Problem.IsKind(execution.ProblemNotReady) {
		t.Errorf("got %s", got)
	}
}

func TestClientDisconnectCancelsExecution(t *testing.T) {
	for _, accept := range []string{"application/json", "text/event-stream"} {
		t.Run(accept, func(t *testing.T) {
			reached, cancelled := make(chan struct{}), make(chan struct{})
			f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
				if accept == "text/event-stream" {
					streaming(w).send(event("start", execution.Start{}))
				}
				close(reached)
				<-r.Context().Done()
				close(cancelled)
			}, nil)
			ctx, cancel := context.WithCancel(context.Background())
			returned := make(chan struct{})
			go func() {
				defer close(returned)
				req, _ := http.NewRequestWithContext(ctx, "POST", f.url+"/v1/sandbox/execute", strings.NewReader(program))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", accept)
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

func TestForwardedReads(t *testing.T) {
	f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != "GET":
			t.Errorf("%s %s", r.Method, r.URL)
		case r.URL.Path == "/v1/limits":
			w.Header().Set("Content-Type", execution.MediaProblem)
			w.WriteHeader(503)
			_, _ = io.WriteString(w, `{"status":503}`)
		case r.Header.Get("Accept") == "text/event-stream":
			s := streaming(w)
			s.send("event: pools\ndata: []\n\n")
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `["`+r.URL.Path+`"]`)
		}
	}, nil)
	for _, path := range []string{"/v1/languages", "/v1/pools"} {
		if got := call(t, "GET", f.url+path, ""); got.status != 200 || got.body != `["`+path+`"]` {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := call(t, "GET", f.url+"/v1/limits", ""); got.status != 503 || got.body != `{"status":503}` {
		t.Errorf("got %+v", got)
	}
	res := open(t, context.Background(), "GET", f.url+"/v1/pools", "", "Accept", "text/event-stream")
	defer res.Body.Close()
	want := "event: pools\ndata: []\n\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	f.stop()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
}

func TestReadsAreNotForwardedInOneProcess(t *testing.T) {
	f := serveChat(t, chat.Options{Config: testConfig()})
	if got := call(t, "GET", f.url+"/v1/pools", ""); got.status != 404 {
		t.Errorf("got %+v", got)
	}
}

// BenchmarkExecuteHop measures what the hop to execute costs: a request
// answered straight, and through chat.
func BenchmarkExecuteHop(b *testing.B) {
	upstream := func(w http.ResponseWriter, _ *http.Request) { completed(w, `{"stdout":"1\n"}`) }
	for name, url := range map[string]string{
		"straight": serveHTTP(b, upstream), "through chat": withExecute(b, upstream, nil).url + "/v1/sandbox/execute",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				res := open(b, context.Background(), "POST", url, program)
				_, err := io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK {
					b.Fatal(res.Status, err)
				}
			}
		})
	}
}

// The request to execute belongs to the trace of the client's, as a span.
func TestExecuteTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	parents := make(chan string, 1)
	f := withExecute(t, func(w http.ResponseWriter, r *http.Request) {
		parents <- r.Header.Get("Traceparent")
		completed(w, `{}`)
	}, nil)
	f.execute(t, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	got := spans.GetSpans()
	if len(got) != 1 {
		t.Fatalf("%d spans", len(got))
	}
	s := got[0]
	if s.Parent.SpanID().String() != "b7ad6b7169203331" || s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("span %s of trace %s has the parent %s", s.Name, s.SpanContext.TraceID(), s.Parent.SpanID())
	}
	if parent := <-parents; parent != "00-"+s.SpanContext.TraceID().String()+"-"+s.SpanContext.SpanID().String()+"-01" {
		t.Errorf("execute got %q", parent)
	}
}
