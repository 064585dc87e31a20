package openapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/tests/openapi"
)

const text = `
openapi: 3.1.1
paths:
  /a/b:
    post:
      responses:
        '200':
          headers:
            X-Id: {$ref: '#/components/headers/Id'}
          content:
            application/json:
              schema: {$ref: '#/components/schemas/Thing'}
              example: {count: 1}
            text/event-stream:
              schema: {type: string}
              x-events:
                thing: {$ref: '#/components/schemas/Thing'}
                message: {$ref: '#/components/schemas/Thing'}
        '202': {description: nothing}
        '400':
          content:
            application/problem+json: {schema: {type: object, properties: {status: {type: integer}}}}
  /things/{id}/parts/{path}:
    get:
      responses:
        '206': {content: {'*/*': {schema: {type: string}}}}
  /things/{id}:
    get:
      responses:
        '202': {description: nothing}
components:
  headers:
    Id: {required: true, schema: {type: string, pattern: '^[a-z]+$'}}
  responses:
    NotFound: {description: nothing}
    MethodNotAllowed: {description: nothing}
  schemas:
    Thing:
      type: object
      required: [count]
      properties:
        count: {type: integer, examples: [1]}
        at: {type: string, format: date-time}
`

func TestCheckResponse(t *testing.T) {
	d, err := openapi.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Operations(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"GET /things/{id}", "GET /things/{id}/parts/{path}", "POST /a/b"}) {
		t.Errorf("operations %q", got)
	}
	const events = "text/event-stream"
	for name, test := range map[string]struct {
		method, path string
		status       int
		media, body  string
		id           string
		wrong        string // a part of the error; empty: none
	}{
		"good":                {"POST", "/a/b", 200, "application/json", `{"count": 1, "at": "2026-01-01T00:00:00Z"}`, "x", ""},
		"undocumented status": {"POST", "/a/b", 201, "application/json", `{"count": 1}`, "x", "status 201"},
		"undocumented media":  {"POST", "/a/b", 200, "text/html", `{"count": 1}`, "x", "text/html"},
		"no media":            {"POST", "/a/b", 200, "", `{"count": 1}`, "x", "content type"},
		"charset":             {"POST", "/a/b", 200, "application/json; charset=latin-1", `{"count": 1}`, "x", "charset"},
		"no header":           {"POST", "/a/b", 200, "application/json", `{"count": 1}`, "", "X-Id is missing"},
		"bad header":          {"POST", "/a/b", 200, "application/json", `{"count": 1}`, "1", "X-Id"},
		"unknown member":      {"POST", "/a/b", 200, "application/json", `{"count": 1, "m": 1}`, "x", "'m'"},
		"missing member":      {"POST", "/a/b", 200, "application/json", `{}`, "x", "'count'"},
		"wrong type":          {"POST", "/a/b", 200, "application/json", `{"count": "1"}`, "x", "/count"},
		"wrong format":        {"POST", "/a/b", 200, "application/json", `{"count": 1, "at": "now"}`, "x", "date-time"},
		"not JSON":            {"POST", "/a/b", 200, "application/json", `{`, "x", "not JSON"},
		"events":              {"POST", "/a/b", 200, events, ": hi\n\nevent: thing\ndata: {\"count\": 1}\n\ndata: {\"count\": 2}\n\ndata: [DONE]\n\n", "x", ""},
		"no events":           {"POST", "/a/b", 200, events, "", "x", "no events"},
		"unknown event":       {"POST", "/a/b", 200, events, "event: other\ndata: {\"count\": 1}\n\n", "x", `"other"`},
		"bad event":           {"POST", "/a/b", 200, events, "event: thing\ndata: {}\n\n", "x", "'count'"},
		"early end":           {"POST", "/a/b", 200, events, "data: [DONE]\n\ndata: {\"count\": 1}\n\n", "x", "not JSON"},
		"cut event":           {"POST", "/a/b", 200, events, "event: thing\ndata: {\"count\": 1}\n", "x", "within an event"},
		"no event":            {"POST", "/a/b", 200, events, "hello\n\n", "x", `"hello"`},
		"body of nothing":     {"POST", "/a/b", 202, "application/json", `{}`, "", "there is a body"},
		"nothing":             {"POST", "/a/b", 202, "", "", "", ""},
		"problem":             {"POST", "/a/b", 400, "application/problem+json", `{"status": 400}`, "", ""},
		"problem that lies":   {"POST", "/a/b", 400, "application/problem+json", `{"status": 500}`, "", "status 500"},
		"a parameter":         {"GET", "/things/1", 202, "", "", "", ""},
		"one with slashes":    {"GET", "/things/1/parts/a/b?c", 206, "image/png", "x", "", ""},
		"no parameter":        {"GET", "/things/", 202, "", "", "", "status 202"},
		"too many":            {"GET", "/things/1/other", 206, "image/png", "x", "", "status 206"},
		"other path":          {"GET", "/c", 404, "", "", "", ""},
		"other path, answers": {"GET", "/c", 200, "", "", "", "status 200"},
		"other method":        {"PUT", "/a/b", 405, "", "", "", ""},
		"other method, works": {"PUT", "/a/b", 200, "", "", "", "status 200"},
	} {
		t.Run(name, func(t *testing.T) {
			res := &http.Response{StatusCode: test.status, Header: http.Header{}}
			for name, value := range map[string]string{"Content-Type": test.media, "X-Id": test.id} {
				if value != "" {
					res.Header.Set(name, value)
				}
			}
			err := d.CheckResponse(test.method, test.path, res, []byte(test.body))
			switch {
			case test.wrong == "" && err != nil:
				t.Error(err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("%v", err)
			}
		})
	}
}

func TestExamples(t *testing.T) {
	d, err := openapi.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	examples := d.Examples()
	if len(examples) != 2 {
		t.Fatalf("%v", examples)
	}
	for _, e := range examples {
		if err := d.Validate(e.Schema, e.Value); err != nil {
			t.Errorf("%s: %v", e.Where, err)
		}
	}
	if _, err := openapi.Parse([]byte("a: 1\na: 2")); err == nil {
		t.Error("a member twice is taken")
	}
}
