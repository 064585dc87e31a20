package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
	result, err := t.run(server.Context(c), server.RequestID(c), p)
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
	return result, blame(ctx, result, err)
}

// blame returns the error of an execution: a server that shuts down is to blame
// for what it cancels.
func blame(ctx context.Context, result *execution.Result, err error) error {
	if errors.Is(context.Cause(ctx), server.ErrShutdown) && (err != nil || result.Status == execution.StatusCancelled) {
		problem := execution.NewProblem(execution.ProblemNotReady, "The server was shut down before the program ended.")
		problem.RetryAfterSeconds = 1
		return problem
	}
	return err
}

// run executes p without a stream.
func (t *Transport) run(ctx context.Context, id string, p *execution.Program) (*execution.Result, error) {
	result, err := t.executor.Execute(ctx, id, p, nil)
	return t.settle(ctx, result, err)
}

// settle makes what there was of a failed execution a part of the problem.
func (t *Transport) settle(ctx context.Context, result *execution.Result, err error) (*execution.Result, error) {
	if err = blame(ctx, result, err); err == nil {
		return result, nil
	}
	var problem *execution.Problem
	if asProblem(err, &problem) && (result.Stdout != "" || result.Stderr != "") {
		withOutput := *problem
		withOutput.Partial = &execution.Partial{Stdout: result.Stdout, Stderr: result.Stderr, SandboxName: result.SandboxName}
		err = &withOutput
	}
	return nil, err
}

func sendResult(c *fiber.Ctx, r *execution.Result) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	c.Set(fiber.HeaderContentType, execution.MediaJSON)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Send(body)
}
