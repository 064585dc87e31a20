// Package openai has the errors of OpenAI's API.
package openai

import (
	"encoding/json"
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// Error is an error in OpenAI's shape.
type Error struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Types of the errors that Preheat itself makes.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeUpstream       = "upstream_error"
	TypeServer         = "server_error"
)

// NewError returns an error of a type and a code, for a response of a status.
func NewError(status int, kind, code, message string) *Error {
	return &Error{status: status, Type: kind, Code: &code, Message: message}
}

// InvalidRequest returns the error of a request that is wrong.
func InvalidRequest(code, message string) *Error {
	return NewError(http.StatusBadRequest, TypeInvalidRequest, code, message)
}

// JSON returns e as the one member of an object, as OpenAI sends it.
func (e *Error) JSON() []byte {
	b, err := json.Marshal(map[string]*Error{"error": e})
	if err != nil {
		return []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
	}
	return b
}

// Event returns e as an event of a completion stream, without a name: clients
// know an error by its member.
func (e *Error) Event() []byte {
	return append(append([]byte("data: "), e.JSON()...), "\n\n"...)
}

// Send answers f with e.
func (e *Error) Send(f *fiber.Ctx) error {
	f.Status(e.status).Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return f.Send(e.JSON())
}
