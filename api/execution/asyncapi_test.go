package execution_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
)

const messages = "/components/messages/"

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

// The document is what AsyncAPI says that documents are.
func TestAsyncAPIIsOne(t *testing.T) {
	file, err := os.Open("testdata/asyncapi-3.0.0.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	meta, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	const name = "http://asyncapi.com/definitions/3.0.0/asyncapi.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, meta); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text []byte) error {
		converted, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(converted))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	if err := check(execution.AsyncAPI()); err != nil {
		t.Error(err)
	}
	for from, to := range map[string]string{"action: receive": "action: take", "asyncapi: 3.0.0": "asyncapi: 2.6.0", "contentType:": "content_type:", "reply:": "answer:"} {
		if check(bytes.ReplaceAll(execution.AsyncAPI(), []byte(from), []byte(to))) == nil {
			t.Errorf("%s is valid as well", to)
		}
	}
}

// Every reference leads somewhere, and every schema compiles.
func TestAsyncAPIReferences(t *testing.T) {
	d, neighbour := eventDocument(t), document(t)
	references := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				references++
				file, pointer, _ := strings.Cut(ref, "#")
				target := map[string]*openapi.Document{"": d, "./openapi.yaml": neighbour}[file]
				if target == nil || target.At(pointer) == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, member := range v {
				walk(member)
			}
		case []any:
			for _, element := range v {
				walk(element)
			}
		}
	}
	for _, part := range []string{"/channels", "/operations", "/components"} {
		walk(d.At(part))
	}
	if references < 15 {
		t.Errorf("%d references", references)
	}
	for _, m := range messageNames(d) {
		for _, part := range []string{"/headers", "/payload"} {
			if err := d.Validate(messages+m+part, true); err == nil || strings.Contains(err.Error(), "the schema at") {
				t.Errorf("%s%s: %v", m, part, err)
			}
		}
	}
}

func messageNames(d *openapi.Document) []string {
	all, _ := d.At("/components/messages").(map[string]any)
	return slices.Sorted(maps.Keys(all))
}

// The document names what the constants name.
func TestAsyncAPIMatchesConstants(t *testing.T) {
	d := eventDocument(t)
	wantSchema := map[string]string{
		"RequestedBinary": "Request", "RequestedStructured": "RequestedEvent", "CompletedBinary": "Result", "CompletedStructured": "CompletedEvent",
	}
	if got, want := messageNames(d), slices.Sorted(maps.Keys(wantSchema)); !slices.Equal(got, want) {
		t.Fatalf("messages %q instead of %q", got, want)
	}
	for m, schema := range wantSchema {
		wantType, wantMedia := execution.TypeCompleted, execution.MediaJSON
		if strings.HasPrefix(m, "Requested") {
			wantType = execution.TypeRequested
		}
		if strings.HasSuffix(m, "Structured") {
			wantMedia = execution.MediaCloudEvent
		}
		for member, want := range map[string]string{
			"name": wantType, "contentType": wantMedia, "payload/$ref": "./openapi.yaml#" + schemas + schema,
		} {
			if got := d.At(messages + m + "/" + member); got != want {
				t.Errorf("%s: %s is %v instead of %s", m, member, got, want)
			}
		}
	}
	completed := schemas + "CompletedHeaders"
	cause := "ce-" + execution.ExtensionCausationID
	for at, want := range map[string]any{
		completed + "/properties/ce-type/const":                   execution.TypeCompleted,
		completed + "/properties/content-type/const":              execution.MediaJSON,
		schemas + "RequestedHeaders/properties/ce-type/not/const": execution.TypeCompleted,
		messages + "CompletedBinary/correlationId/location":       "$message.header#/" + cause,
		messages + "CompletedStructured/correlationId/location":   "$message.payload#/" + execution.ExtensionCausationID,
		"/operations/execute/action":                              "receive",
		"/operations/execute/reply/channel/$ref":                  "#/channels/executions",
		"/channels/executions/address":                            "/",
		"/channels/executions/messages/completedStructured/$ref":  "#" + messages + "CompletedStructured",
		"/channels/executions/messages/requestedBinary/$ref":      "#" + messages + "RequestedBinary",
	} {
		if got := d.At(at); got != want {
			t.Errorf("%s is %v instead of %v", at, got, want)
		}
	}
	if !slices.Contains(texts(d.At(completed+"/required")), cause) {
		t.Errorf("%s is not required", cause)
	}
	if err := d.Validate(schemas+"StructuredHeaders", map[string]any{"content-type": execution.MediaCloudEvent}); err != nil {
		t.Error(err)
	}
	if got := document(t).At(schemas + "CompletedEvent/properties/type/const"); got != execution.TypeCompleted {
		t.Errorf("a completed event's type is %v", got)
	}
}

// The examples are valid, and their data is what the server takes.
func TestAsyncAPIExamples(t *testing.T) {
	d := eventDocument(t)
	checked := 0
	for _, m := range messageNames(d) {
		examples, _ := d.At(messages + m + "/examples").([]any)
		for _, e := range examples {
			example, _ := e.(map[string]any)
			for _, part := range []string{"headers", "payload"} {
				checked++
				if err := d.Validate(messages+m+"/"+part, example[part]); err != nil {
					t.Errorf("%s, %v: %v", m, example["name"], err)
				}
			}
		}
	}
	if checked < 8 {
		t.Errorf("%d parts of examples", checked)
	}
}

// The schemas of headers refuse what is not as the binding has it.
func TestAsyncAPIHeaders(t *testing.T) {
	d := eventDocument(t)
	for text, want := range map[string]bool{
		`{}`: true, `{"ce-mine": "a%20b"}`: true, `{"ce-mine": "a b"}`: false, `{"ce-mine": "é"}`: false, `{"ce-mine": "50%"}`: false, `{"ce-mine": "\""}`: false,
		`{"ce-Mine": "a"}`: false, `{"ce-data": "a"}`: false, `{"ce-datacontenttype": "a"}`: false, `{"ce-id": ""}`: false, `{"ce-specversion": "0.3"}`: false,
		`{"ce-type": "other"}`: true, fmt.Sprintf(`{"ce-type": %q}`, execution.TypeCompleted): false, `{"ce-time": "yesterday"}`: false,
	} {
		headers := map[string]any{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}
		if err := json.Unmarshal([]byte(text), &headers); err != nil {
			t.Fatal(err)
		}
		if err := d.Validate(schemas+"RequestedHeaders", headers); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
