package chat

import (
	"encoding/json"
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// apiError is an error in OpenAI's shape.
type apiError struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Types of the errors that chat itself makes.
const (
	typeInvalidRequest = "invalid_request_error"
	typeUpstream       = "upstream_error"
	typeServer         = "server_error"
)

func newAPIError(status int, kind, code, message string) *apiError {
	return &apiError{status: status, Type: kind, Code: &code, Message: message}
}

func invalidRequest(code, message string) *apiError {
	return newAPIError(http.StatusBadRequest, typeInvalidRequest, code, message)
}

// JSON returns e as the one member of an object, as OpenAI sends it.
func (e *apiError) JSON() []byte {
	b, err := json.Marshal(map[string]*apiError{"error": e})
	if err != nil {
		return []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
	}
	return b
}

// event returns e as an event of a completion stream, without a name: clients
// know an error by its member.
func (e *apiError) event() []byte {
	return append(append([]byte("data: "), e.JSON()...), "\n\n"...)
}

func (e *apiError) send(f *fiber.Ctx) error {
	f.Status(e.status).Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return f.Send(e.JSON())
}
