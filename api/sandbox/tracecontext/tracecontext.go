// Package tracecontext carries a trace through the objects of a cluster, as the
// traceparent of W3C Trace Context: a claim has its claimant's in an
// annotation, and a claimed sandbox has its holder's in a label. So what the
// controller does for a request belongs to the trace of that request.
package tracecontext

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const key = "traceparent"

// Of returns the traceparent of ctx's span, or "" when there is none. It is fit
// for the value of a label.
func Of(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[key]
}

// With returns ctx as a part of the trace of a traceparent; one that is
// not valid changes nothing.
func With(ctx context.Context, traceparent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{key: traceparent})
}

// Link returns a link to the span of a traceparent, if it is a valid one.
func Link(traceparent string) (trace.Link, bool) {
	sc := trace.SpanContextFromContext(With(context.Background(), traceparent))
	return trace.Link{SpanContext: sc}, sc.IsValid()
}
