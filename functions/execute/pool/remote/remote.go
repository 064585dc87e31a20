// Package remote runs programs in sandboxes whose runner is reached over a
// connection: it translates between package pool and the runner's protocol.
package remote

import (
	"context"
	"errors"

	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// Run hands a run over and feeds sink until the runner reports the end, as
// wire.Client.Execute does. The error is a *pool.InvalidError when the runner
// refuses the run for what is in it, and any other *wire.Failure as it is.
func Run(ctx context.Context, c *wire.Client, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
	outcome, err := c.Execute(ctx, request(run), sink)
	var failure *wire.Failure
	if errors.As(err, &failure) && failure.Code == wire.FailureInvalid {
		err = &pool.InvalidError{Detail: failure.Detail}
	}
	return pool.Outcome(outcome), err
}

func request(run pool.Run) wire.Run {
	r := wire.Run{
		Language: run.Language, Code: run.Code, Stdin: run.Stdin, Args: run.Args, Env: run.Env,
		Alternatives: true,
		Limits: wire.Limits{
			Timeout: run.Limits.Timeout, Output: run.Limits.Output, TotalOutput: run.Limits.TotalOutput,
			Artifacts: run.Limits.Artifacts, ArtifactBytes: run.Limits.ArtifactBytes,
			Results: run.Limits.Results, ResultBytes: run.Limits.ResultBytes,
		},
	}
	for _, f := range run.Files {
		r.Files = append(r.Files, wire.File(f))
	}
	return r
}
