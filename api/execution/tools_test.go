package execution_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
)

// The document for language models is a part of the whole one: the same paths,
// and members of the same types.
func TestToolsArePartOfTheAPI(t *testing.T) {
	whole := document(t)
	tools, err := openapi.Parse(execution.ToolsAPI())
	if err != nil {
		t.Fatal(err)
	}
	if got := tools.Operations(); len(got) != 2 {
		t.Errorf("a model gets %q", got)
	}
	for _, operation := range tools.Operations() {
		if !slices.Contains(whole.Operations(), operation) {
			t.Errorf("there is no %s", operation)
		}
	}
	const content = "/content/application~1json/schema"
	execute := "/paths/~1v1~1sandbox~1execute/post"
	languages := "/paths/~1v1~1languages/get/responses/200" + content
	for at, schema := range map[string]string{
		execute + "/requestBody" + content:        "Request",
		execute + "/responses/200" + content:      "Result",
		languages:                                 "LanguageList",
		languages + "/properties/languages/items": "Language",
	} {
		properties, _ := tools.At(at + "/properties").(map[string]any)
		if len(properties) == 0 {
			t.Errorf("nothing at %s", at)
		}
		for name := range properties {
			got := texts(tools.At(at + "/properties/" + name + "/type"))
			want := texts(whole.At(schemas + schema + "/properties/" + name + "/type"))
			if len(got) != 1 || !slices.Contains(want, got[0]) {
				t.Errorf("%s.%s is %q and not %q", schema, name, got, want)
			}
		}
	}
	if required := texts(tools.At(execute + "/requestBody" + content + "/required")); !slices.Equal(required, texts(whole.At(schemas+"Request/required"))) {
		t.Errorf("a request needs %q", required)
	}
}

// Programs make tools of the document that models understand: nothing but plain
// types, no parameters, and a description of everything.
func TestToolsArePlain(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(execution.ToolsAPI(), &root); err != nil {
		t.Fatal(err)
	}
	var walk func(where string, v any)
	walk = func(where string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"$ref", "parameters", "anyOf", "oneOf", "allOf", "headers"} {
				if v[name] != nil {
					t.Errorf("%s has %s", where, name)
				}
			}
			if _, isList := v["type"].([]any); isList {
				t.Errorf("%s has several types", where)
			}
			if strings.HasSuffix(where, "/properties") {
				for name, property := range v {
					if p, _ := property.(map[string]any); p["description"] == nil {
						t.Errorf("%s/%s has no description", where, name)
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(where+"/"+name, v[name])
			}
		case []any:
			for _, element := range v {
				walk(where, element)
			}
		}
	}
	walk("", root)
}
