package openapi

import (
	"fmt"
	"net/http"
	"strings"
)

// CheckMessage checks a response, or a request, against a message of an
// AsyncAPI document: its content type and ce- headers, and its body.
func (d *Document) CheckMessage(message string, header http.Header, body []byte) error {
	at := "/components/messages/" + Escape(message)
	if d.At(at) == nil {
		return fmt.Errorf("there is no message %s", message)
	}
	headers := map[string]any{}
	for name, values := range header {
		name = strings.ToLower(name)
		if name != "content-type" && !strings.HasPrefix(name, "ce-") {
			continue
		}
		if len(values) != 1 {
			return fmt.Errorf("the header %s has %d values", name, len(values))
		}
		headers[name] = values[0]
	}
	if err := d.Validate(at+"/headers", headers); err != nil {
		return fmt.Errorf("%s: headers %v: %w", message, headers, err)
	}
	if err := d.ValidateJSON(at+"/payload", body); err != nil {
		return fmt.Errorf("%s: %w", message, err)
	}
	return nil
}
