package transport

import (
	"context"
	"errors"
	"slices"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/internal/server"
)

// stream answers c with the events of p's execution. Until p has its sandbox,
// a failure is an ordinary problem response; afterwards it is in the terminal
// event. ctx is that of the exchange; event is what asks for it, or
// nil.
func (t *Transport) stream(ctx context.Context, c *fiber.Ctx, p *execution.Program, event *cloudevent.Event) error {
	id := server.RequestID(c)
	q, err := newQueue(ctx, execution.Start{Language: p.Language, RequestID: id})
	if err != nil {
		return execute.NoMemory()
	}
	ended := make(chan struct{})
	var failed error
	t.running.Go(func() {
		defer close(ended)
		result, err := t.execute(ctx, id, p, q)
		failed = err
		q.close(exitOf(result, err, id))
		if err == nil && event != nil {
			t.auditStream(ctx, event, result)
		}
	})
	select {
	case <-q.started:
	case <-ended:
		// A program that ends at once has started all the same.
		select {
		case <-q.started:
		default:
			return failed
		}
	}
	return server.Stream(c, func(_ context.Context, events *server.SSE) error {
		for {
			batch, more := q.take()
			for _, e := range batch {
				if err := q.send(e, events.Send); err != nil {
					// The peer is gone, so that ctx has ended, too.
					<-ended
					return err
				}
			}
			if !more {
				return nil
			}
		}
	})
}

// auditStream gives the sink the event of an execution whose caller got a
// stream: what the program yielded was not kept, and the event says so.
func (t *Transport) auditStream(ctx context.Context, event *cloudevent.Event, r *execution.Result) {
	if t.sink == nil {
		return
	}
	audited := *r
	for _, s := range []*execution.StreamTruncation{&audited.Truncated.Stdout, &audited.Truncated.Stderr} {
		s.Truncated, s.CapturedBytes, s.HeadBytes = s.TotalBytes > 0, 0, 0
	}
	audited.Notes = append(slices.Clone(audited.Notes), "output, rich results and files went to the caller as a stream and are not part of this event")
	t.auditResult(ctx, event, newAnswer(&audited), &audited)
}

func exitOf(r *execution.Result, err error, id string) execution.Exit {
	x := r.Exit()
	if err == nil {
		return x
	}
	x.ExitCode, x.Status = nil, execution.StatusPlatformError
	if !asProblem(err, &x.Problem) {
		x.Problem = execution.NewProblem(execution.ProblemInternal, "The server failed to run the program.")
	}
	x.Problem.RequestID = id
	return x
}

func asProblem(err error, p **execution.Problem) bool { return errors.As(err, p) }
