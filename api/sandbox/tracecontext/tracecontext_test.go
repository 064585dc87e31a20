package tracecontext_test

import (
	"testing"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/preheat-dev/preheat/api/sandbox/tracecontext"
)

// TestRoundTrip: a trace survives its way through an object, as a label too,
// and what is not a traceparent makes none.
func TestRoundTrip(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := tracecontext.With(t.Context(), parent)
	if got := tracecontext.Of(ctx); got != parent {
		t.Errorf("got %q, want %q", got, parent)
	}
	if !trace.SpanContextFromContext(ctx).IsRemote() {
		t.Error("the span is not remote")
	}
	if problems := validation.IsValidLabelValue(parent); len(problems) > 0 {
		t.Errorf("it is not fit for a label: %v", problems)
	}
	if link, ok := tracecontext.Link(parent); !ok || link.SpanContext.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("the link is %v, %v", link, ok)
	}
	for _, bad := range []string{"", "00-1-2-01", parent + "x", "ff" + parent[2:], "00-00000000000000000000000000000000-b7ad6b7169203331-01"} {
		if got := tracecontext.Of(tracecontext.With(t.Context(), bad)); got != "" {
			t.Errorf("%q makes the trace %q", bad, got)
		}
		if _, ok := tracecontext.Link(bad); ok {
			t.Errorf("%q makes a link", bad)
		}
	}
}
