// Package capture runs a program for a door and keeps what it yields, within the
// memory of the door's exchange. What came of it is an Outcome, which has words
// for all that a foreign protocol may have no word for.
package capture

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/internal/budget"
)

// Runner runs programs. It is a *client.Client.
type Runner interface {
	Execute(ctx context.Context, r execution.Request, key string) (*execution.Result, error)
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
	// order in which it came, with a line where bytes are left out.
	// It is nil of a program that nobody observed.
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

// Observer is called with what a program yields, as it comes. Without any
// member nobody observes it.
type Observer struct {
	Start  func(execution.Start)
	Output func(stream execution.Stream, data []byte)
}

// Run runs a program. What the platform says against it is a part of the
// outcome. The error is not nil when ctx ended before the outcome was known.
func Run(ctx context.Context, runner Runner, r execution.Request, watch Observer) (*Outcome, error) {
	o := new(Outcome)
	err := o.run(ctx, runner, r, watch)
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

// run has a program run that nobody observes answered at once, which is faster.
func (o *Outcome) run(ctx context.Context, runner Runner, r execution.Request, watch Observer) error {
	if watch.Start != nil || watch.Output != nil {
		return o.stream(ctx, runner, r, watch)
	}
	result, err := runner.Execute(ctx, r, "")
	if err == nil {
		o.Exit = result.Exit()
		return o.whole(ctx, result.Partial())
	}
	var known *execution.Problem
	if errors.As(err, &known) && known.Partial != nil {
		o.Exit.SandboxName, o.Exit.Truncated, o.Exit.Notes = known.Partial.SandboxName, known.Partial.Truncated, known.Partial.Notes
		err = errors.Join(err, o.whole(ctx, known.Partial))
	}
	return err
}

// whole takes over what a program yielded.
func (o *Outcome) whole(ctx context.Context, p *execution.Partial) error {
	var err error
	if o.Stdout, err = streamOf(p.Stdout, p.StdoutBase64, p.Truncated.Stdout); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	if o.Stderr, err = streamOf(p.Stderr, p.StderrBase64, p.Truncated.Stderr); err != nil {
		return fmt.Errorf("stderr: %w", err)
	}
	o.Results, o.Artifacts = p.Results, p.Artifacts
	size := len(o.Stdout.Data) + len(o.Stderr.Data)
	for _, r := range o.Results {
		size += r.Size()
	}
	for _, a := range o.Artifacts {
		size += len(a.Content)
	}
	return budget.Take(ctx, int64(copies*size))
}

func streamOf(text string, exact *string, t execution.StreamTruncation) (Stream, error) {
	s := Stream{Data: []byte(text)}
	if exact != nil {
		var err error
		if s.Data, err = base64.StdEncoding.DecodeString(*exact); err != nil {
			return Stream{}, err
		}
	}
	if t.Truncated {
		s.Gap, s.Skipped = min(int(t.HeadBytes), len(s.Data)), t.TotalBytes-t.CapturedBytes
	}
	return s, nil
}

func (o *Outcome) stream(ctx context.Context, runner Runner, r execution.Request, watch Observer) error {
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
	return err
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
		o.Both = fmt.Appendf(o.Both, gapLine, skipped)
	}
	s.Data = append(s.Data, data...)
	o.Both = append(o.Both, data...)
	return nil
}
