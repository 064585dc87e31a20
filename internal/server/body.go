package server

import (
	"bytes"
	"fmt"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// Body returns c's body, without any content coding undone. It counts against
// the server's budget until the exchange ends; where there is no room it is a
// problem (503) that asks to come again.
func Body(c *fiber.Ctx) ([]byte, error) {
	body := c.BodyRaw()
	x := exchangeOf(c)
	if x == nil || x.body {
		return body, nil
	}
	if err := x.memory.Take(int64(len(body))); err != nil {
		problem := execution.NewProblem(execution.ProblemNotReady, "There is no memory for a request of %d bytes now.", len(body))
		problem.RetryAfterSeconds = 1
		return nil, problem
	}
	x.body = true
	return body, nil
}

// Encode answers c with a body that write writes, straight into the response.
// An error before anything was sent is the handler's; after that the body is
// cut, so that the client can tell it from a complete one.
func Encode(c *fiber.Ctx, mediaType string, write func(io.Writer) error) error {
	var body bytes.Buffer
	if err := write(&body); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	c.Set(fiber.HeaderContentType, mediaType)
	return c.Send(body.Bytes())
}
