// Package relay sends requests of clients on to other servers and gives their
// answers back. A call ends when its client goes away or the server says nothing
// for too long. What broke off is never made to look complete.
package relay

import (
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/preheat-dev/preheat/functions/chat/openai"
	"github.com/preheat-dev/preheat/internal/server"
)

// Silence is how long a stream of execute may say nothing, pings included.
const Silence = 30 * time.Second

const (
	// headerVia lists the instances of Preheat that a request to a model
	// server has passed.
	headerVia = "X-Preheat-Via"

	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// Instance names a process in requests to other servers, so that it recognises
// a request that it sent to itself.
type Instance string

// NewInstance returns the name of this process.
func NewInstance() Instance { return Instance(uuid.NewString()) }

// Loop returns an error for a request that this instance itself has sent.
func (i Instance) Loop(f *fiber.Ctx) *openai.Error {
	if strings.Contains(f.Get(headerVia), string(i)) {
		return openai.NewError(http.StatusLoopDetected, openai.TypeServer, "loop_detected", "The model server's URL leads back to this server.")
	}
	return nil
}

// SetVia adds the instance to those that a request has passed. f is what the
// request is sent for, or nil.
func (i Instance) SetVia(f *fiber.Ctx, req *http.Request) {
	via := string(i)
	if f != nil && f.Get(headerVia) != "" {
		via = f.Get(headerVia) + ", " + via
	}
	req.Header.Set(headerVia, via)
}

// SetTraceHeaders gives a request the id and the trace of the client's.
func SetTraceHeaders(f *fiber.Ctx, req *http.Request) {
	req.Header.Set(server.HeaderRequestID, server.RequestID(f))
	SetHeaders(f, req, headerTraceParent, headerTraceState)
}

// OpenAIHeaders are the headers of OpenAI's API that a model server gets.
func OpenAIHeaders() []string {
	return []string{"OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project"}
}

// SetHeaders gives a request those of the named headers that the client's has.
func SetHeaders(f *fiber.Ctx, req *http.Request, names ...string) {
	for _, name := range names {
		if v := f.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
}

// CopyModelHeaders gives the client those of the model server's headers that speak
// of limits and of the model.
func CopyModelHeaders(f *fiber.Ctx, h http.Header) {
	for name, values := range h {
		lower := strings.ToLower(name)
		switch {
		case lower == "retry-after", lower == "retry-after-ms", strings.HasPrefix(lower, "x-ratelimit-"), strings.HasPrefix(lower, "openai-"):
			f.Set(name, values[0])
		case lower == "x-request-id":
			f.Set("X-Upstream-Request-Id", values[0])
		}
	}
}
