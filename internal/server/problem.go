package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/preheat-dev/preheat/api/execution"
)

// statusClientGone stands in the log for a response that nobody was there to
// read. It is nginx's code for this.
const statusClientGone = 499

// answer makes err the response of c.
func (s *Server) answer(c *fiber.Ctx, x *exchange, err error) {
	if errors.Is(err, ErrPeerGone) || errors.Is(context.Cause(x.ctx), ErrPeerGone) {
		c.Response().ResetBody()
		c.Status(statusClientGone)
		return
	}
	if errors.Is(err, context.Canceled) && x.ctx.Err() != nil {
		err = context.Cause(x.ctx)
	}
	p := s.problem(err)
	if p.Status >= fiber.StatusInternalServerError && p.IsKind(execution.ProblemInternal) {
		x.log.Error("request failed", "error", err)
	}
	p.RequestID = x.id
	write(c, p)
}

// transportError answers what never became a request: fiber calls it for
// unreadable, oversize and overdue ones.
func (s *Server) transportError(c *fiber.Ctx, err error) error {
	p := s.problem(err)
	if p.Status == fiber.StatusBadRequest {
		// The parser's message quotes the input.
		p.Detail = "The request could not be parsed."
	}
	p.RequestID = uuid.NewString()
	c.Set(HeaderRequestID, p.RequestID)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	if conn, ok := c.Context().Conn().(*conn); ok {
		conn.linger.Store(true)
	}
	s.log.Info("request refused", "request_id", p.RequestID, "status", p.Status,
		"remote", c.Context().RemoteAddr().String(), "detail", p.Detail)
	write(c, p)
	return nil
}

func write(c *fiber.Ctx, p *execution.Problem) {
	c.Response().ResetBody()
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"about:blank","title":"Internal error","status":500}`)
	}
	if p.RetryAfterSeconds > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(p.RetryAfterSeconds))
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Status(p.Status).Set(fiber.HeaderContentType, execution.MediaProblem)
	c.Response().SetBody(body)
}

// problem returns err as a problem of its own, which the caller may change.
func (s *Server) problem(err error) *execution.Problem {
	var p *execution.Problem
	if errors.As(err, &p) {
		own := *p
		if own.Status < 400 || own.Status > 599 {
			own.Status = fiber.StatusInternalServerError
		}
		return &own
	}
	if errors.Is(err, ErrShutdown) {
		p = execution.NewProblem(execution.ProblemNotReady, "The server is shutting down.")
		p.RetryAfterSeconds = 1
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return execution.NewProblem(execution.ProblemDeadline, "The request took too long.")
	}
	var fe *fiber.Error
	if errors.As(err, &fe) {
		return s.statusProblem(fe)
	}
	return execution.NewProblem(execution.ProblemInternal, "The server failed to handle the request.")
}

func (s *Server) statusProblem(fe *fiber.Error) *execution.Problem {
	switch fe.Code {
	case fiber.StatusBadRequest:
		return execution.NewProblem(execution.ProblemMalformed, "%s", fe.Message)
	case fiber.StatusForbidden:
		return execution.NewProblem(execution.ProblemForbidden, "%s", fe.Message)
	case fiber.StatusNotFound:
		return execution.NewProblem(execution.ProblemNotFound, "There is nothing at this path.")
	case fiber.StatusMethodNotAllowed:
		return execution.NewProblem(execution.ProblemMethodNotAllowed, "The Allow header lists the methods of this path.")
	case fiber.StatusRequestEntityTooLarge:
		return execution.NewProblem(execution.ProblemTooLarge, "The body exceeds %d bytes.", s.config.BodyLimit)
	case fiber.StatusUnsupportedMediaType:
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "%s", fe.Message)
	case fiber.StatusRequestTimeout:
		return plain(fe.Code, "The request did not arrive in time.")
	}
	if fe.Code >= fiber.StatusInternalServerError || fe.Code < fiber.StatusBadRequest {
		return execution.NewProblem(execution.ProblemInternal, "The server failed to handle the request.")
	}
	return plain(fe.Code, fe.Message)
}

// plain returns a problem that says no more than its status does.
func plain(status int, detail string) *execution.Problem {
	return &execution.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}
