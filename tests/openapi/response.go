package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// CheckResponse checks a response with its whole body.
func (d *Document) CheckResponse(method, path string, res *http.Response, body []byte) error {
	at, err := d.response(method, path, res.StatusCode)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("%s %s: %d", method, path, res.StatusCode)
	if err := d.checkHeaders(at, res.Header); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if method == http.MethodHead {
		return nil
	}
	if err := d.checkBody(at, res, body); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return nil
}

// response returns where the response of a status is described.
func (d *Document) response(method, path string, status int) (string, error) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	item := "/paths/" + Escape(d.template(path))
	operation := item + "/" + strings.ToLower(method)
	code := strconv.Itoa(status)
	switch {
	case d.At(item) == nil && status == http.StatusNotFound:
		return "/components/responses/NotFound", nil
	case d.At(operation) == nil && status == http.StatusMethodNotAllowed:
		return "/components/responses/MethodNotAllowed", nil
	case (d.At(item) == nil || d.At(operation) == nil) && status == http.StatusForbidden:
		return "/components/responses/Forbidden", nil
	}
	for _, key := range []string{code, "default"} {
		if object, at := d.Object(operation + "/responses/" + key); object != nil {
			return at, nil
		}
	}
	return "", fmt.Errorf("%s %s: status %s is not documented", method, path, code)
}

// template returns the path of the document that path is an instance of, path
// itself where there is none. A last parameter takes slashes as they are.
func (d *Document) template(path string) string {
	path, _, _ = strings.Cut(path, "?")
	paths, _ := d.At("/paths").(map[string]any)
	if paths[path] != nil {
		return path
	}
	found := path
	for each := range paths {
		if instance(strings.Split(each, "/"), strings.Split(path, "/")) && (found == path || len(each) > len(found)) {
			found = each
		}
	}
	return found
}

// instance reports whether the parts of a path are those of a template.
func instance(template, parts []string) bool {
	for i, want := range template {
		parameter := strings.HasPrefix(want, "{")
		switch {
		case i >= len(parts) || parameter && parts[i] == "" || !parameter && parts[i] != want:
			return false
		case parameter && i == len(template)-1:
			return true
		}
	}
	return len(parts) == len(template)
}

func (d *Document) checkHeaders(at string, header http.Header) error {
	response, _ := d.Object(at)
	headers, _ := response["headers"].(map[string]any)
	for name := range headers {
		object, where := d.Object(at + "/headers/" + Escape(name))
		value := header.Get(name)
		switch {
		case value == "" && object["required"] == true:
			return fmt.Errorf("the header %s is missing", name)
		case value != "":
			if err := d.Validate(where+"/schema", value); err != nil {
				return fmt.Errorf("the header %s: %w", name, err)
			}
		}
	}
	return nil
}

func (d *Document) checkBody(at string, res *http.Response, body []byte) error {
	if content, _ := d.At(at + "/content").(map[string]any); content == nil {
		if len(body) > 0 {
			return fmt.Errorf("there is a body: %.500q", body)
		}
		return nil
	}
	media, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("the content type %q: %w", res.Header.Get("Content-Type"), err)
	}
	described := at + "/content/" + Escape(media)
	if any := at + "/content/" + Escape("*/*"); d.At(described) == nil && d.At(any) != nil {
		return nil // nothing is said of what it is
	}
	if d.At(described) == nil {
		return fmt.Errorf("the content type %s is not documented: %.500q", media, body)
	}
	switch {
	case media == "text/event-stream":
		return d.checkEvents(described, body)
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		if charset := params["charset"]; charset != "" {
			return fmt.Errorf("a charset %q of JSON", charset)
		}
		if media == "application/problem+json" {
			if err := sameStatus(body, res.StatusCode); err != nil {
				return err
			}
		}
		return d.ValidateJSON(described+"/schema", body)
	}
	return d.Validate(described+"/schema", string(body))
}

func sameStatus(body []byte, status int) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	object, _ := value.(map[string]any)
	if said, ok := number(object["status"]); !ok || said != int64(status) {
		return fmt.Errorf("the problem says status %v", object["status"])
	}
	return nil
}

// Event is one server-sent event; its name is "message" where it has none.
type Event struct{ Name, Data string }

// ParseEvents reads a stream of events. What is not closed by a blank line is
// an error.
func ParseEvents(body []byte) ([]Event, error) {
	var events []Event
	blocks := strings.Split(string(body), "\n\n")
	if last := blocks[len(blocks)-1]; last != "" {
		return nil, fmt.Errorf("the stream ends within an event: %.500q", last)
	}
	for _, block := range blocks[:len(blocks)-1] {
		e := Event{Name: "message"}
		var data []string
		for line := range strings.SplitSeq(block, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "event":
				e.Name = value
			case "data":
				data = append(data, value)
			case "", "id": // a comment, or what no data depends on
			default:
				return nil, fmt.Errorf("the line %.500q", line)
			}
		}
		if data == nil {
			continue
		}
		e.Data = strings.Join(data, "\n")
		events = append(events, e)
	}
	return events, nil
}

// done ends the streams of OpenAI's API.
const done = "[DONE]"

func (d *Document) checkEvents(described string, body []byte) error {
	events, err := ParseEvents(body)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return errors.New("there are no events")
	}
	for i, e := range events {
		schema := described + "/x-events/" + Escape(e.Name)
		switch {
		case d.At(schema) == nil:
			return fmt.Errorf("the event %q is not documented", e.Name)
		case e == Event{"message", done} && i == len(events)-1:
			continue
		}
		if err := d.ValidateJSON(schema, []byte(e.Data)); err != nil {
			return fmt.Errorf("the event %s: %w", e.Name, err)
		}
	}
	return nil
}
