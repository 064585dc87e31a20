package server

import (
	"context"
	"io"
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// StreamBytes answers c with status 200 and a body that produce writes. What
// each Write takes is sent at once; w is for one goroutine at a time. produce
// runs after the handler returned: it must not touch c, whose values are
// another request's by then, which is why it is given all it needs.
//
// ctx is the exchange's context. Write fails when the client is gone or does
// not read for the server's write timeout. A body that produce leaves by an
// error is cut, so that the client can tell it from a complete one.
func StreamBytes(c *fiber.Ctx, produce func(ctx context.Context, w io.Writer) error) error {
	x := exchangeOf(c)
	if x == nil {
		return errForeign
	}
	if c.Method() == http.MethodHead {
		return nil
	}
	x.produce = func() error { return produce(x.ctx, flushed{x.response}) }
	return nil
}
