package relay

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/openai"
	"github.com/preheat-dev/preheat/internal/server"
)

var (
	// errTooLarge: an answer exceeds its limit.
	errTooLarge = errors.New("the answer is too large")
	// errCut: a stream ended before it said that it was complete.
	errCut = errors.New("the stream broke off")
)

// IsTooLarge reports whether an answer exceeded its limit.
func IsTooLarge(err error) bool { return errors.Is(err, errTooLarge) }

// IsCallers reports whether an exchange ended because its client is gone or the
// server shuts down: there is nobody left to answer.
func IsCallers(err error) bool {
	return errors.Is(err, server.ErrPeerGone) || errors.Is(err, server.ErrShutdown)
}

// UpstreamError says why the model server's answer is missing or broken.
func UpstreamError(err error) *openai.Error {
	switch {
	case errors.Is(err, ErrTimeout):
		return openai.NewError(http.StatusGatewayTimeout, openai.TypeUpstream, "upstream_timeout", "The model server did not answer in time.")
	case errors.Is(err, errTooLarge):
		return openai.NewError(http.StatusBadGateway, openai.TypeUpstream, "upstream_too_large", "The model server's answer is too large.")
	case errors.Is(err, server.ErrShutdown):
		return openai.NewError(http.StatusServiceUnavailable, openai.TypeServer, "shutting_down", "The server is shutting down.")
	case errors.Is(err, errCut):
		return openai.NewError(http.StatusBadGateway, openai.TypeUpstream, "upstream_cut", "The model server's answer broke off.")
	}
	return openai.NewError(http.StatusBadGateway, openai.TypeUpstream, "upstream_unreachable", "The model server cannot be reached.")
}

// ExecutionProblem says why execute's answer is missing or broken.
func ExecutionProblem(err error) *execution.Problem {
	switch {
	case errors.Is(err, ErrTimeout):
		return execution.NewProblem(execution.ProblemDeadline, "The execute function did not answer in time.")
	case errors.Is(err, errTooLarge):
		return execution.NewProblem(execution.ProblemUpstream, "The execute function's answer is too large.")
	case errors.Is(err, server.ErrShutdown):
		return execution.NewProblem(execution.ProblemNotReady, "The server is shutting down.")
	case errors.Is(err, errCut):
		return execution.NewProblem(execution.ProblemUpstream, "The execute function's stream broke off.")
	}
	return execution.NewProblem(execution.ProblemUpstream, "The execute function cannot be reached.")
}

// Redact returns err without the URL that net/http puts into it, which may
// hold a password.
func Redact(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
