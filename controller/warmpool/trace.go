package warmpool

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/tracecontext"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// maxLinks bounds the claims that a refill is linked to.
const maxLinks = 16

// refill is a sandbox on its way to be warm.
type refill struct {
	start time.Time
	// traces are those of the claims that made it necessary.
	traces []string
}

// tracer makes the controller's spans. Those of one claim belong to the trace
// of its claimant. A refill serves whoever comes next, and is a trace of its
// own with links to the claims that made it necessary.
type tracer struct{ trace.Tracer }

func newTracer() tracer { return tracer{otel.Tracer(scope)} }

// bind begins the binding of a claim that waits.
func (t tracer) bind(ctx context.Context, c *v1alpha1.SandboxClaim, pod *corev1.Pod) (context.Context, func(error)) {
	ctx = tracecontext.With(ctx, c.Annotations[v1alpha1.AnnotationTrace])
	return t.begin(ctx, "sandbox.bind", pod, c.Name)
}

// destroy begins the end of a sandbox that a claim held. The others end
// without a span: no request is about them.
func (t tracer) destroy(ctx context.Context, pod *corev1.Pod) (context.Context, func(error)) {
	claim := pod.Labels[v1alpha1.LabelClaim]
	if claim == "" {
		return ctx, func(error) {}
	}
	return t.begin(tracecontext.With(ctx, pod.Labels[v1alpha1.LabelTrace]), "sandbox.destroy", pod, claim)
}

func (t tracer) begin(ctx context.Context, name string, pod *corev1.Pod, claim string) (context.Context, func(error)) {
	ctx, span := t.Start(ctx, name, trace.WithAttributes(append(about(pod.Namespace, pod.Labels[v1alpha1.LabelPool], pod.Name),
		attribute.String("preheat.claim", claim))...))
	return ctx, func(err error) { finish(span, err) }
}

// refill tells of a sandbox that has become warm, or could not be created.
func (t tracer) refill(ctx context.Context, pool *v1alpha1.SandboxWarmPool, sandbox string, r refill, err error) {
	var links []trace.Link
	for _, parent := range r.traces {
		if link, ok := tracecontext.Link(parent); ok {
			links = append(links, link)
		}
	}
	_, span := t.Start(ctx, "sandbox.refill", trace.WithNewRoot(), trace.WithTimestamp(r.start), trace.WithLinks(links...),
		trace.WithAttributes(about(pool.Namespace, pool.Name, sandbox)...))
	finish(span, err)
}

func finish(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

func about(namespace, pool, sandbox string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", namespace), attribute.String("preheat.pool", pool),
		attribute.String("preheat.sandbox", sandbox),
	}
}
