package httpapi

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// Body is c's body, a Request.
func (a *API) Body(c *fiber.Ctx) ([]byte, error) {
	limits := a.executor.Limits()
	return server.BodyWithin(c, limits.BodyBytes, limits.BodyTooLarge())
}

// Respond answers c, whose body holds document, a Request: with a Result or, if
// c asks for it, with a stream.
func (a *API) Respond(c *fiber.Ctx, document []byte) error {
	p, problem := a.Decode(document)
	if problem != nil {
		return problem
	}
	if server.WantsEvents(c) {
		return a.Stream(server.Context(c), c, p, nil)
	}
	result, err := a.executor.Execute(server.Context(c), server.RequestID(c), p, nil)
	if result, err = Finalize(server.Context(c), result, err); err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return server.Encode(c, execution.MediaJSON, result.Encode)
}

// Decode returns the program for which a Request asks.
func (a *API) Decode(document []byte) (*execution.Program, *execution.Problem) {
	if limit := a.executor.Limits().BodyBytes; int64(len(document)) > limit {
		return nil, a.executor.Limits().BodyTooLarge()
	}
	r, problem := execution.Decode(document)
	if problem != nil {
		return nil, problem
	}
	return a.executor.Check(&r)
}

// partialBytes bounds the document of what there was of a failed execution.
const partialBytes = 1 << 20

// Finalize returns what the caller of an execution gets of what the executor
// returned: what there was of one that failed is a part of the problem.
func Finalize(ctx context.Context, result *execution.Result, err error) (*execution.Result, error) {
	if err = attributeShutdown(ctx, result, err); err == nil {
		return result, nil
	}
	var problem *execution.Problem
	if errors.As(err, &problem) && result.Yielded() {
		withOutput := *problem
		withOutput.Partial = result.Within(partialBytes).Partial()
		err = &withOutput
	}
	return nil, err
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
