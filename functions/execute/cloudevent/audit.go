package cloudevent

import (
	"cmp"
	"context"
	"slices"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// Sink copies completed events. It must not block.
type Sink interface{ Send(*ce.Event) }

// auditBytes bounds the sink's copies where completed events have no bound:
// brokers take a MiB.
const auditBytes = 1_000_000

// auditResult gives the sink a copy of an answer, cut to what brokers take if it
// is not yet.
func (r *Receiver) auditResult(ctx context.Context, event *ce.Event, a *answer, result *execution.Result) {
	if r.sink == nil {
		return
	}
	if a.data == nil || r.eventBytes == 0 {
		var err error
		if a, _, err = r.bounded(ctx, event, a, result, cmp.Or(r.eventBytes, auditBytes)); err != nil {
			server.Logger(ctx).Error("A completed event could not be made for the sink", "error", err)
			return
		}
	}
	r.sink.Send(r.completed(event, a))
}

// auditStream gives the sink the event of an execution whose caller got a
// stream: what the program yielded was not kept, and the event says so.
func (r *Receiver) auditStream(ctx context.Context, event *ce.Event, result *execution.Result) {
	if r.sink == nil {
		return
	}
	audited := *result
	for _, s := range []*execution.StreamTruncation{&audited.Truncated.Stdout, &audited.Truncated.Stderr} {
		s.Truncated, s.CapturedBytes, s.HeadBytes = s.TotalBytes > 0, 0, 0
	}
	audited.Notes = append(slices.Clone(audited.Notes), "output, rich results and files went to the caller as a stream and are not part of this event")
	r.auditResult(ctx, event, newAnswer(&audited), &audited)
}
