package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
)

func eventDocument(t *testing.T) *openapi.Document {
	t.Helper()
	d, err := openapi.Parse(execution.AsyncAPI())
	if err == nil {
		err = d.AddNeighbour("openapi.yaml", execution.OpenAPI())
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The examples of the AsyncAPI document run, and the events that answer them
// are as the document says.
func TestAsyncAPIExamples(t *testing.T) {
	d := eventDocument(t)
	for request, answer := range map[string]string{"RequestedBinary": "CompletedBinary", "RequestedStructured": "CompletedStructured"} {
		examples, _ := d.At("/components/messages/" + request + "/examples").([]any)
		if len(examples) < 2 {
			t.Errorf("%s has %d examples", request, len(examples))
		}
		for _, e := range examples {
			example, _ := e.(map[string]any)
			name, _ := example["name"].(string)
			t.Run(request+" "+name, func(t *testing.T) {
				text, err := json.Marshal(example["payload"])
				if err != nil {
					t.Fatal(err)
				}
				var header []string
				headers, _ := example["headers"].(map[string]any)
				for name, value := range headers {
					header = append(header, name, value.(string))
				}
				res, body := post(t, shared, 200, "/", string(text), header...)
				if err := d.CheckMessage(answer, res.Header, body); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Completed events are as the AsyncAPI document says, however the program
// ended and whatever the extensions are.
func TestCompletedEventsMatchAsyncAPI(t *testing.T) {
	d := eventDocument(t)
	for _, request := range []string{
		echo,
		`{"language": "bash", "code": "exit 3"}`,
		`{"language": "bash", "code": "kill -9 $$"}`,
		`{"language": "bash", "code": "printf '\\xff'; echo x > made.txt; yes | head -c 100000", "limits": {"output_bytes": 100}}`,
		`{"language": "bash", "code": "sleep 9", "limits": {"timeout_seconds": 0.1}}`,
		`{"language": "python", "code": "display({'a': 1}); 2"}`,
	} {
		res, body := post(t, shared, 200, "/", request, binaryEvent("naïve 100%", "Ce-Team", "blue%20team", "Ce-Empty", "")...)
		if err := d.CheckMessage("CompletedBinary", res.Header, body); err != nil {
			t.Error(err)
		}
		structured := `{"specversion": "1.0", "id": "naïve 100%", "source": "/s", "type": "t", "team": "blue team", "n": -1, "b": false, "none": null, "data": ` + request + `}`
		res, body = post(t, shared, 200, "/", structured, contentType, execution.MediaCloudEvent)
		if err := d.CheckMessage("CompletedStructured", res.Header, body); err != nil {
			t.Error(err)
		}
	}
}

// The check of messages can fail.
func TestAsyncAPIRefuses(t *testing.T) {
	d := eventDocument(t)
	res, body := post(t, shared, 200, "/", echo, binaryEvent("1")...)
	for name, change := range map[string]func(http.Header) string{
		"attribute missing":  func(h http.Header) string { h.Del("Ce-Causationid"); return string(body) },
		"another type":       func(h http.Header) string { h.Set("Ce-Type", execution.TypeRequested); return string(body) },
		"value not encoded":  func(h http.Header) string { h.Set("Ce-Causationid", "a b"); return string(body) },
		"attribute twice":    func(h http.Header) string { h.Add("Ce-Id", "2"); return string(body) },
		"member missing":     func(http.Header) string { return strings.Replace(string(body), `"exit_code":0,`, "", 1) },
		"member not allowed": func(http.Header) string { return strings.Replace(string(body), `{`, `{"more":1,`, 1) },
	} {
		header := res.Header.Clone()
		if d.CheckMessage("CompletedBinary", header, []byte(change(header))) == nil {
			t.Errorf("%s: valid", name)
		}
	}
}
