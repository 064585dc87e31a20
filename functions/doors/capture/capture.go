// Package capture runs a program for a door and keeps what it yields, within the
// memory of the door's exchange. What came of it is an Outcome, which has words
// for all that a foreign protocol may have no word for.
package capture

import (
	"context"
	"errors"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/internal/budget"
)

// Runner runs programs. It is a *client.Client.
type Runner interface {
	Stream(ctx context.Context, r execution.Request, h client.Handler) (*execution.Exit, error)
}

// Copies of what is kept, in memory, until the door has answered: as it came, as
// text, and in the answer's JSON at most twice more, escaped.
const copies = 6

// Outcome is what came of a program.
type Outcome struct {
	// Exit says how the program ended. When Problem is not nil, it is what is
	// known of a program whose end is not.
	Exit execution.Exit
	// Problem says why the platform did not run the program to its end.
	Problem *execution.Problem
	// Stdout and Stderr are what is kept of the streams, Both is the same in the
	// order in which it came.
	Stdout, Stderr Stream
	Both           []byte
	Results        []execution.RichResult
	Artifacts      []execution.Artifact
}

// Stream is what is kept of an output stream.
type Stream struct {
	Data []byte
	// Gap is where in Data bytes were left out, Skipped how many.
	Gap     int
	Skipped int64
}

// Observer is called with what a program yields, as it comes. Its members may be
// nil.
type Observer struct {
	Start  func(execution.Start)
	Output func(stream execution.Stream, data []byte)
}

// Run runs a program. What the platform says against it is a part of the
// outcome. The error is not nil when ctx ended before the outcome was known.
func Run(ctx context.Context, runner Runner, r execution.Request, watch Observer) (*Outcome, error) {
	o := new(Outcome)
	exit, err := runner.Stream(ctx, r, client.Handler{
		Start: func(s execution.Start) error {
			o.Exit.SandboxName = s.SandboxName
			if watch.Start != nil {
				watch.Start(s)
			}
			return nil
		},
		Output: func(stream execution.Stream, data []byte, skipped int64) error {
			if err := o.output(ctx, stream, data, skipped); err != nil {
				return err
			}
			if watch.Output != nil {
				watch.Output(stream, data)
			}
			return nil
		},
		Result: func(r execution.RichResult) error {
			if err := budget.Take(ctx, int64(copies*r.Size())); err != nil {
				return err
			}
			o.Results = append(o.Results, r)
			return nil
		},
		Artifact: func(a execution.Artifact) error {
			if err := budget.Take(ctx, int64(copies*len(a.Content))); err != nil {
				return err
			}
			o.Artifacts = append(o.Artifacts, a)
			return nil
		},
	})
	if exit != nil {
		o.Exit = *exit
	}
	if err == nil {
		return o, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o.Exit.Status = execution.StatusPlatformError
	o.Problem = problem(err)
	return o, nil
}

func problem(err error) *execution.Problem {
	var known *execution.Problem
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, budget.ErrFull):
		full := execution.NewProblem(execution.ProblemNotReady, "The server has no memory left for the results of programs.")
		full.RetryAfterSeconds = 1
		return full
	case errors.Is(err, client.ErrCut):
		return execution.NewProblem(execution.ProblemUpstream, "The connection broke off before the program's end. What came of it is not known.")
	}
	return execution.NewProblem(execution.ProblemUpstream, "What executes programs cannot be reached.")
}

func (o *Outcome) output(ctx context.Context, stream execution.Stream, data []byte, skipped int64) error {
	if err := budget.Take(ctx, int64(copies*len(data))); err != nil {
		return err
	}
	s := &o.Stdout
	if stream == execution.Stderr {
		s = &o.Stderr
	}
	if skipped > 0 {
		s.Gap, s.Skipped = len(s.Data), s.Skipped+skipped
	}
	s.Data = append(s.Data, data...)
	o.Both = append(o.Both, data...)
	return nil
}
