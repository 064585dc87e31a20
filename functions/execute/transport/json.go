package transport

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/internal/server"
)

// executeJSON answers POST /v1/sandbox/execute.
func (t *Transport) executeJSON(c *fiber.Ctx) error {
	if err := server.RequireJSON(c); err != nil {
		return err
	}
	body, err := server.Body(c)
	if err != nil {
		return err
	}
	return t.executeDocument(c, body)
}

// executeDocument answers a request as plain JSON.
func (t *Transport) executeDocument(c *fiber.Ctx, document []byte) error {
	p, problem := t.program(document)
	if problem != nil {
		return problem
	}
	if server.WantsEvents(c) {
		return t.stream(server.Context(c), c, p, nil)
	}
	result, _, err := t.run(server.Context(c), server.RequestID(c), p)
	if err != nil {
		return err
	}
	return sendResult(c, result)
}

// program decodes and checks a request.
func (t *Transport) program(body []byte) (*execution.Program, *execution.Problem) {
	if limit := t.executor.Limits().BodyBytes; int64(len(body)) > limit {
		return nil, execution.NewProblem(execution.ProblemTooLarge, "The body exceeds %d bytes.", limit)
	}
	r, problem := execution.Decode(body)
	if problem != nil {
		return nil, problem
	}
	return t.executor.Check(&r)
}

// execute is the executor's Execute, with the error that a caller gets.
func (t *Transport) execute(ctx context.Context, id string, p *execution.Program, sink execute.Sink) (*execution.Result, error) {
	result, err := t.executor.Execute(ctx, id, p, sink)
	return result, attributeShutdown(ctx, result, err)
}

// attributeShutdown returns the error of an execution: one that a server cancels
// as it shuts down is not the caller's doing.
func attributeShutdown(ctx context.Context, result *execution.Result, err error) error {
	if errors.Is(context.Cause(ctx), server.ErrShutdown) && (err != nil || result.Status == execution.StatusCancelled) {
		problem := execution.NewProblem(execution.ProblemNotReady, "The server was shut down before the program ended.")
		problem.RetryAfterSeconds = 1
		return problem
	}
	return err
}

// run executes p without a stream. begun says that it had a sandbox.
func (t *Transport) run(ctx context.Context, id string, p *execution.Program) (r *execution.Result, begun bool, err error) {
	r, err = t.executor.Execute(ctx, id, p, nil)
	begun = r.SandboxName != ""
	r, err = finalize(ctx, r, err)
	return r, begun, err
}

// partialBytes bounds the document of what there was of a failed execution.
const partialBytes = 1 << 20

// finalize makes what there was of a failed execution a part of the problem.
func finalize(ctx context.Context, result *execution.Result, err error) (*execution.Result, error) {
	if err = attributeShutdown(ctx, result, err); err == nil {
		return result, nil
	}
	var problem *execution.Problem
	if asProblem(err, &problem) && result.Yielded() {
		withOutput := *problem
		withOutput.Partial = result.Within(partialBytes).Partial()
		err = &withOutput
	}
	return nil, err
}

func sendResult(c *fiber.Ctx, r *execution.Result) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return server.Encode(c, execution.MediaJSON, r.Encode)
}
