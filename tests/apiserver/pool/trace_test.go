package pool_test

import (
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/server"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// seenSpan is a span of the controller, as a collector gets it.
type seenSpan struct {
	name, trace, id, parent string
	links                   []string
}

// spanCollector is where the controller sends its spans.
type spanCollector struct {
	mu    sync.Mutex
	spans []seenSpan
}

// collect has the controllers that the test starts export their spans.
func collect(t *testing.T) *spanCollector {
	c := &spanCollector{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		var export collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(data, &export)
		}
		if err != nil {
			t.Errorf("an export of spans: %v", err)
		}
		c.add(&export)
	}))
	t.Cleanup(s.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL+"/v1/traces")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	return c
}

func (c *spanCollector) add(export *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				x := seenSpan{
					name: s.GetName(), trace: hex.EncodeToString(s.GetTraceId()),
					id: hex.EncodeToString(s.GetSpanId()), parent: hex.EncodeToString(s.GetParentSpanId()),
				}
				for _, l := range s.GetLinks() {
					x.links = append(x.links, hex.EncodeToString(l.GetTraceId()))
				}
				c.spans = append(c.spans, x)
			}
		}
	}
}

// child returns the span of a name whose parent is given, or nil.
func (c *spanCollector) child(name, trace, parent string) *seenSpan {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.name == name && s.trace == trace && s.parent == parent {
			return &s
		}
	}
	return nil
}

// refillFor reports whether a refill is linked to a trace.
func (c *spanCollector) refillFor(trace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		for _, l := range s.links {
			if s.name == "sandbox.refill" && l == trace {
				return true
			}
		}
	}
	return false
}

// record has the spans of this process recorded.
func record(t *testing.T) *tracetest.InMemoryExporter {
	spans := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	return spans
}

// serveExecute serves execute as its function does, and returns its address.
func serveExecute(t *testing.T, p pool.Pool) string {
	registry := prometheus.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	limits := execution.DefaultLimits()
	limits.QueueSeconds = 60
	executor := execute.New(p, limits, execute.NewMetrics(registry), log)
	api := httpapi.New(executor, p, registry)
	events := cloudevent.New(cloudevent.Options{Executor: executor, API: api, Source: "/test"})
	web, err := server.New(server.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	events.RegisterExecute(web.App())
	api.Register(web.App())
	events.Register(web.App())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- web.Serve(t.Context(), l) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
		api.Wait()
	})
	return "http://" + l.Addr().String()
}

// send posts an event, or plain JSON without attributes.
func send(t *testing.T, url string, header map[string]string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/", strings.NewReader(`{"language":"python","code":"1"}`))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("answer %d %s, %v", resp.StatusCode, body, err)
	}
}

// lineage finds the spans from the request's parent on down, each the child of
// the one before, and returns the id of the claim's.
func lineage(t *testing.T, spans tracetest.SpanStubs, trace, parent string) (claim string) {
	t.Helper()
	find := func(name, parent string) string {
		for _, s := range spans {
			if s.Name == name && s.SpanContext.TraceID().String() == trace && s.Parent.SpanID().String() == parent {
				return s.SpanContext.SpanID().String()
			}
		}
		t.Errorf("there is no span %s below %s in trace %s", name, parent, trace)
		return ""
	}
	execution := find("execution", parent)
	find("sandbox.run", execution)
	return find("sandbox.claim", execution)
}

// TestTraceFast: from the request's traceparent, be it the HTTP header or the
// event's extension, one trace goes through execute, the claim and the run to
// the end of the sandbox in the controller. The refill is linked to it.
func TestTraceFast(t *testing.T) {
	spans, controller := record(t), collect(t)
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 1))
	sp.Controller()
	p := sp.Claimant()
	url := serveExecute(t, p)
	const parent = "b7ad6b7169203331"
	for trace, header := range map[string]map[string]string{
		"0af7651916cd43dd8448eb211c80319c": {"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-" + parent + "-01"},
		"1af7651916cd43dd8448eb211c80319c": {
			"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/test", "Ce-Type": execution.TypeRequested,
			"Ce-Traceparent": "00-1af7651916cd43dd8448eb211c80319c-" + parent + "-01",
		},
	} {
		sp.Eventually("a sandbox is warm", func() bool { return sp.Warm() == 1 && p.Status()[0].Warm == 1 })
		send(t, url, header)
		claim := lineage(t, spans.GetSpans(), trace, parent)
		sp.Eventually("the end is in the trace", func() bool { return controller.child("sandbox.destroy", trace, claim) != nil })
		sp.Eventually("the refill is linked to it", func() bool { return controller.refillFor(trace) })
	}
}

// TestTraceSlow: a claim that waits carries its trace to the controller.
func TestTraceSlow(t *testing.T) {
	spans, controller := record(t), collect(t)
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 0))
	p := sp.Claimant()
	sp.Eventually("the pool is known", func() bool { return len(p.Languages()) > 0 })
	url := serveExecute(t, p)
	const trace, parent = "2af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	traceparent := "00-" + trace + "-" + parent + "-01"
	var request sync.WaitGroup
	request.Go(func() { send(t, url, map[string]string{"Traceparent": traceparent}) })
	var annotation string
	sp.Eventually("the claim waits", func() bool {
		for _, c := range sp.Claims() {
			annotation = c.Annotations[v1alpha1.AnnotationTrace]
			return true
		}
		return false
	})
	sp.Controller()
	request.Wait()
	if claim := lineage(t, spans.GetSpans(), trace, parent); annotation != "00-"+trace+"-"+claim+"-01" {
		t.Errorf("the claim's annotation is %q, its span %s", annotation, claim)
	}

	// Nobody but the controller binds a claim that was made by hand.
	const hand = "3af7651916cd43dd8448eb211c80319c"
	sp.Create(&v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "hand", Annotations: map[string]string{v1alpha1.AnnotationTrace: "00-" + hand + "-" + parent + "-01"}},
		Spec:       v1alpha1.SandboxClaimSpec{WarmPoolRef: v1alpha1.Reference{Name: "code"}},
	})
	var bind *seenSpan
	sp.Eventually("its bind is in the trace", func() bool {
		bind = controller.child("sandbox.bind", hand, parent)
		return bind != nil
	})
	sp.EndClaim("hand")
	sp.Eventually("its end is in the trace", func() bool { return controller.child("sandbox.destroy", hand, bind.id) != nil })
}
