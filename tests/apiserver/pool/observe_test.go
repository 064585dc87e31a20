package pool_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// TestMetrics reads the controller's and the claimant's numbers as Prometheus
// would, and checks them against what was done.
func TestMetrics(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sp.Settings("config-observability", map[string]string{"metrics-protocol": "prometheus", "metrics-endpoint": address})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	registry := prometheus.NewRegistry()
	p := sp.ClaimantWith(registry)
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 && p.Status()[0].Warm == 2 })
	s := mustClaim(t, p)

	has := func(name, value string) func() bool {
		return func() bool {
			for line := range strings.Lines(scrape(address)) {
				if strings.HasPrefix(line, name+"{") && strings.Contains(line, `pool="code"`) && strings.HasSuffix(strings.TrimSpace(line), " "+value) {
					return true
				}
			}
			return false
		}
	}
	for name, value := range map[string]string{
		"preheat_pool_warm": "2", "preheat_pool_warming": "0", "preheat_pool_claimed": "1", "preheat_pool_desired": "2",
		"preheat_refill_seconds_count": "3",
	} {
		sp.Eventually(name+" is "+value, has(name, value))
	}
	s.Release()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "preheat_claim_seconds" {
			continue
		}
		m := f.GetMetric()
		if len(m) != 1 || m[0].GetLabel()[0].GetValue() != "fast" || m[0].GetHistogram().GetSampleCount() != 1 {
			t.Errorf("preheat_claim_seconds: %v", m)
		}
		return
	}
	t.Error("there is no preheat_claim_seconds")
}

func scrape(address string) string {
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(data)
}

// TestTrace: a claim and its run are children of the request's span.
func TestTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 1))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("a sandbox is warm", func() bool { return sp.Warm() == 1 && p.Status()[0].Warm == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ctx, request := provider.Tracer("test").Start(ctx, "request")
	s, err := p.Claim(ctx, pool.Claim{Language: "python", ID: "one", Deadline: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	var out fakenode.Output
	if _, err := s.Run(ctx, fakenode.Program(), &out); err != nil {
		t.Fatal(err)
	}
	s.Release()
	request.End()
	var names []string
	for _, span := range spans.GetSpans() {
		if span.SpanContext.TraceID() != request.SpanContext().TraceID() {
			t.Errorf("span %s is in another trace", span.Name)
		}
		names = append(names, span.Name)
		attributes := fmt.Sprint(span.Attributes)
		if span.Name != "request" && !strings.Contains(attributes, s.Name()) {
			t.Errorf("span %s does not name the sandbox: %s", span.Name, attributes)
		}
	}
	if want := []string{"sandbox.claim", "sandbox.run", "request"}; !slices.Equal(names, want) {
		t.Errorf("spans %v, want %v", names, want)
	}
}
