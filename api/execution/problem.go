package execution

import (
	"fmt"
	"net/http"
	"strings"
)

// Problem is a platform error as a problem document (RFC 9457). It is an
// error, so that the functions can return it as it is.
type Problem struct {
	// Type is a URN that names the kind of problem.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong with this request.
	Detail string `json:"detail"`
	// Field names the part of the request that is wrong, as a path such as
	// "files[2].path".
	Field string `json:"field,omitempty"`
	// RequestID is also in the X-Request-Id header and in the logs.
	RequestID string `json:"request_id,omitempty"`
	// RetryAfterSeconds is also in the Retry-After header.
	RetryAfterSeconds int `json:"retry_after_seconds,omitempty"`
	// Waiting is how many requests wait for a sandbox, where there was none.
	Waiting *int `json:"waiting,omitempty"`
	// Reason says why a session is over.
	Reason SessionEnd `json:"reason,omitempty"`
	// Running is the id of the execution that a session is busy with.
	Running string `json:"running,omitempty"`
	// Partial is what the program had written when the platform failed.
	Partial *Partial `json:"partial,omitempty"`

	// Message, Code and APIError say it once more, where SDKs of other services
	// look for it. Only responses have them, see WithAPIError.
	Message  string    `json:"message,omitempty"`
	Code     string    `json:"code,omitempty"`
	APIError *APIError `json:"error,omitempty"`
}

// APIError is a problem in the shape of OpenAI's errors.
type APIError struct {
	Message string `json:"message"`
	// Type is the kind of error by OpenAI's names.
	Type string `json:"type"`
	// Param is the problem's field.
	Param *string `json:"param"`
	// Code is the last part of the problem's type.
	Code *string `json:"code"`
}

// WithAPIError returns a copy of p that also has the members that SDKs of other
// services read.
func (p *Problem) WithAPIError() *Problem {
	own := *p
	own.Message = p.Error()
	own.APIError = &APIError{Message: own.Message, Type: errorType(p.Status)}
	if p.Field != "" {
		own.APIError.Param = &own.Field
	}
	if kind, ok := strings.CutPrefix(p.Type, problemURN); ok {
		own.Code = strings.ReplaceAll(kind, "-", "_")
		own.APIError.Code = &own.Code
	}
	return &own
}

// errorType is OpenAI's name for what a status stands for.
func errorType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// Partial is what there was of an execution that the platform could not
// complete. Its fields are those of a Result.
type Partial struct {
	Stdout       string       `json:"stdout"`
	Stderr       string       `json:"stderr"`
	StdoutBase64 *string      `json:"stdout_base64"`
	StderrBase64 *string      `json:"stderr_base64"`
	Truncated    Truncated    `json:"truncated"`
	Results      []RichResult `json:"results"`
	Artifacts    []Artifact   `json:"artifacts"`
	SandboxName  string       `json:"sandbox_name"`
	Notes        []string     `json:"notes"`
}

// Yielded reports whether the program had written or returned anything.
func (r *Result) Yielded() bool {
	return r.Truncated.Stdout.TotalBytes > 0 || r.Truncated.Stderr.TotalBytes > 0 || len(r.Results) > 0 || len(r.Artifacts) > 0
}

// Partial returns what there is of r, whose execution failed.
func (r *Result) Partial() *Partial {
	return &Partial{
		Stdout: r.Stdout, Stderr: r.Stderr, StdoutBase64: r.StdoutBase64, StderrBase64: r.StderrBase64, Truncated: r.Truncated,
		Results: r.Results, Artifacts: r.Artifacts, SandboxName: r.SandboxName, Notes: r.Notes,
	}
}

// ProblemType is the last part of a Problem's type URN.
type ProblemType string

// The kinds of problem.
const (
	ProblemMalformed        ProblemType = "malformed"
	ProblemForbidden        ProblemType = "forbidden"
	ProblemNotFound         ProblemType = "not-found"
	ProblemMethodNotAllowed ProblemType = "method-not-allowed"
	ProblemTooLarge         ProblemType = "too-large"
	ProblemUnsupportedMedia ProblemType = "unsupported-media-type"
	ProblemInvalidValue     ProblemType = "invalid-value"
	ProblemNoSandbox        ProblemType = "no-sandbox"
	ProblemOverQuota        ProblemType = "over-quota"
	ProblemInternal         ProblemType = "internal"
	ProblemUpstream         ProblemType = "upstream"
	ProblemNotReady         ProblemType = "not-ready"
	ProblemDeadline         ProblemType = "deadline"
	ProblemSandboxLost      ProblemType = "sandbox-lost"
	// ProblemInterrupted is of an event whose program an earlier delivery has
	// begun, and nobody knows what came of it. No broker sends it again.
	ProblemInterrupted ProblemType = "interrupted"
	// ProblemAnswerDropped is of an event that an earlier delivery has answered,
	// with an answer that is no longer kept. No broker sends it again.
	ProblemAnswerDropped ProblemType = "answer-dropped"
	// ProblemSessionEnded is of a session that there was; Reason says why it is
	// over.
	ProblemSessionEnded ProblemType = "session-ended"
	// ProblemSessionBusy: another execution, Running, goes on in the session.
	ProblemSessionBusy ProblemType = "session-busy"
	// ProblemNothingRuns: there is no execution to interrupt.
	ProblemNothingRuns ProblemType = "nothing-runs"
	// ProblemTooManySessions: as many sessions are open as may be.
	ProblemTooManySessions ProblemType = "too-many-sessions"
	// ProblemNoSessions: the server's pools keep no sessions.
	ProblemNoSessions ProblemType = "no-sessions"
	// ProblemPrecondition: a file is not as If-Match or If-None-Match has it.
	ProblemPrecondition ProblemType = "precondition-failed"
	// ProblemRange: a file has nothing in the range that was asked for.
	ProblemRange ProblemType = "range-not-satisfiable"
)

const problemURN = "urn:preheat:problem:"

type problemKind struct {
	status int
	title  string
}

func (t ProblemType) kind() problemKind {
	switch t {
	case ProblemMalformed:
		return problemKind{http.StatusBadRequest, "The request is malformed"}
	case ProblemForbidden:
		return problemKind{http.StatusForbidden, "The request is not allowed"}
	case ProblemNotFound:
		return problemKind{http.StatusNotFound, "Not found"}
	case ProblemMethodNotAllowed:
		return problemKind{http.StatusMethodNotAllowed, "Method not allowed"}
	case ProblemTooLarge:
		return problemKind{http.StatusRequestEntityTooLarge, "The request is too large"}
	case ProblemUnsupportedMedia:
		return problemKind{http.StatusUnsupportedMediaType, "Unsupported media type"}
	case ProblemInvalidValue:
		return problemKind{http.StatusUnprocessableEntity, "A value of the request is invalid"}
	case ProblemNoSandbox:
		return problemKind{http.StatusTooManyRequests, "No sandbox became free in time"}
	case ProblemOverQuota:
		return problemKind{http.StatusTooManyRequests, "The quota is used up"}
	case ProblemUpstream:
		return problemKind{http.StatusBadGateway, "The upstream server failed"}
	case ProblemNotReady:
		return problemKind{http.StatusServiceUnavailable, "The service is not ready"}
	case ProblemDeadline:
		return problemKind{http.StatusGatewayTimeout, "The platform's deadline passed"}
	case ProblemSandboxLost:
		return problemKind{http.StatusBadGateway, "The sandbox was lost"}
	case ProblemInterrupted:
		return problemKind{http.StatusGone, "The execution was interrupted"}
	case ProblemAnswerDropped:
		return problemKind{http.StatusGone, "The answer is no longer kept"}
	}
	return t.sessionKind()
}

// sessionKind is kind for the problems of sessions.
func (t ProblemType) sessionKind() problemKind {
	switch t {
	case ProblemSessionEnded:
		return problemKind{http.StatusGone, "The session has ended"}
	case ProblemSessionBusy:
		return problemKind{http.StatusConflict, "The session is busy"}
	case ProblemNothingRuns:
		return problemKind{http.StatusConflict, "Nothing runs in the session"}
	case ProblemTooManySessions:
		return problemKind{http.StatusTooManyRequests, "Too many sessions are open"}
	case ProblemNoSessions:
		return problemKind{http.StatusNotImplemented, "There are no sessions"}
	case ProblemPrecondition:
		return problemKind{http.StatusPreconditionFailed, "The precondition failed"}
	case ProblemRange:
		return problemKind{http.StatusRequestedRangeNotSatisfiable, "The range cannot be satisfied"}
	}
	return problemKind{http.StatusInternalServerError, "Internal error"}
}

// NewProblem returns a problem of kind t, with its status and title.
func NewProblem(t ProblemType, format string, args ...any) *Problem {
	k := t.kind()
	return &Problem{Type: problemURN + string(t), Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...)}
}

// Invalid returns a problem about the value of one field.
func Invalid(field, format string, args ...any) *Problem {
	p := NewProblem(ProblemInvalidValue, format, args...)
	p.Field = field
	return p
}

// IsKind reports whether p is of kind t.
func (p *Problem) IsKind(t ProblemType) bool { return p.Type == problemURN+string(t) }

// Error implements error.
func (p *Problem) Error() string {
	if p.Field != "" {
		return p.Field + ": " + p.Detail
	}
	return p.Detail
}
