package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// statusClientGone is of a response whose client has closed its connection, or
// its own side of it: then it can still read. It is nginx's code for this.
const statusClientGone = 499

// fail makes err the response, or cuts the one that has begun.
func (x *exchange) fail(err error) {
	x.err = err
	w := x.response
	switch {
	case w.wrote:
		x.abort = true
		return
	case peerGone(x.ctx, err):
		err = &execution.Problem{
			Type: "about:blank", Title: "Client Closed Request", Status: statusClientGone,
			Detail: "The client closed its side of the connection before the answer was there.",
		}
	case errors.Is(err, context.Canceled) && x.ctx.Err() != nil:
		err = context.Cause(x.ctx)
	}
	p := x.server.problem(err)
	if p.Status >= http.StatusInternalServerError && p.IsKind(execution.ProblemInternal) {
		x.log.Error("request failed", "error", err)
	}
	p.RequestID = x.id
	write(w, p)
}

func write(w http.ResponseWriter, p *execution.Problem) {
	body, err := json.Marshal(p.WithAPIError())
	if err != nil {
		body = []byte(`{"type":"about:blank","title":"Internal error","status":500}`)
	}
	h := w.Header()
	if p.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	h.Del("Content-Encoding")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", execution.MediaProblem)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that has gone needs no answer
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
