package httpapi

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/internal/server"
)

// Stream answers c with the events of p's execution. Until p has its sandbox,
// a failure is an ordinary problem response; afterwards it is in the terminal
// event. ctx is that of the exchange. ended, if not nil, gets what is known at
// the end of an execution that did not fail; its output was not kept.
func (a *API) Stream(ctx context.Context, c *fiber.Ctx, p *execution.Program, ended func(*execution.Result)) error {
	if server.Resumes(c) {
		return server.NothingToResume(c)
	}
	id := server.RequestID(c)
	return a.stream(ctx, c, p.Language, func(q *queue) error {
		result, err := a.executor.Execute(ctx, id, p, q)
		err = attributeShutdown(ctx, result, err)
		q.close(exitOf(result, err, id))
		if err == nil && ended != nil {
			ended(result)
		}
		return err
	})
}

// stream answers c with the events that run puts into a queue, the terminal
// one last.
func (a *API) stream(ctx context.Context, c *fiber.Ctx, language string, run func(*queue) error) error {
	q, err := newQueue(ctx, execution.Start{Language: language, RequestID: server.RequestID(c)})
	if err != nil {
		return execute.NoMemory()
	}
	done := make(chan struct{})
	var failed error
	a.running.Go(func() {
		defer close(done)
		failed = run(q)
	})
	select {
	case <-q.started:
	case <-done:
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
				if err := q.send(e, events.SendNumbered); err != nil {
					// The peer is gone, so that ctx has ended, too.
					<-done
					return err
				}
			}
			if !more {
				return nil
			}
		}
	})
}

func exitOf(r *execution.Result, err error, id string) execution.Exit {
	x := r.Exit()
	if err == nil {
		return x
	}
	x.ExitCode, x.Status = nil, execution.StatusPlatformError
	if !errors.As(err, &x.Problem) {
		x.Problem = execution.NewProblem(execution.ProblemInternal, "The server failed to run the program.")
	}
	x.Problem.RequestID = id
	return x
}
