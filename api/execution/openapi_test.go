package execution_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
)

func document(t *testing.T) *openapi.Document {
	t.Helper()
	d, err := openapi.Parse(execution.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const schemas = "/components/schemas/"

// contract are the types of this package that have a schema of their name.
func contract() []reflect.Type {
	var list []reflect.Type
	for _, v := range []any{
		execution.Request{}, execution.Result{}, execution.Start{}, execution.Output{}, execution.Exit{}, execution.Problem{},
		execution.ServerLimits{}, execution.Language{}, execution.PoolStatus{},
		execution.SessionRequest{}, execution.Session{}, execution.SessionEntry{}, execution.SessionFileList{}, execution.SessionResult{}, execution.SessionExit{},
	} {
		collect(reflect.TypeOf(v), &list)
	}
	return list
}

func collect(t reflect.Type, list *[]reflect.Type) {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		collect(t.Elem(), list)
	case reflect.Struct:
		if slices.Contains(*list, t) || t == reflect.TypeFor[time.Time]() {
			return
		}
		*list = append(*list, t)
		for _, field := range fields(t) {
			collect(field.Type, list)
		}
	}
}

// Every field of the types is in the schemas, of the same type and required
// unless it may be left out, and the schemas have nothing else.
func TestSchemasMatchTypes(t *testing.T) {
	d := document(t)
	for _, typ := range contract() {
		schema, _ := d.Object(schemas + typ.Name())
		if schema == nil {
			t.Errorf("%s has no schema", typ.Name())
			continue
		}
		properties, _ := schema["properties"].(map[string]any)
		var names, required []string
		for _, field := range fields(typ) {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
			if options == "" {
				required = append(required, name)
			}
			if err := matches(d, schemas+typ.Name()+"/properties/"+name, field.Type); err != nil {
				t.Errorf("%s.%s: %v", typ.Name(), name, err)
			}
		}
		if got := slices.Sorted(maps.Keys(properties)); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
			t.Errorf("%s: the schema has %q, the type %q", typ.Name(), got, names)
		}
		if got := texts(schema["required"]); !slices.Equal(got, slices.Sorted(slices.Values(required))) {
			t.Errorf("%s: the schema requires %q, the type always has %q", typ.Name(), got, required)
		}
	}
}

// fields are those of a type that JSON shows.
func fields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous })
}

// matches reports how the schema of a property differs from a type.
func matches(d *openapi.Document, at string, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	property, at := d.Object(at)
	if t == reflect.TypeFor[time.Time]() {
		if property["type"] != "string" || property["format"] != "date-time" {
			return fmt.Errorf("the schema says %q, the type is a time", property["type"])
		}
		return nil
	}
	if t.Kind() == reflect.Struct {
		if _, where := d.Object(reference(d, at)); where != schemas+t.Name() {
			return fmt.Errorf("it is described at %s", where)
		}
		return nil
	}
	want := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number",
		reflect.Slice: "array", reflect.Map: "object",
	}[t.Kind()]
	if got := texts(property["type"]); !slices.Contains(got, want) {
		return fmt.Errorf("the schema says %q, the type %s", got, want)
	}
	if t.Kind() == reflect.Slice {
		return matches(d, at+"/items", t.Elem())
	}
	if t.Kind() == reflect.Map {
		return matches(d, at+"/additionalProperties", t.Elem())
	}
	return nil
}

// reference is where the schema of an object stands, which may be the first of
// several of which one or all hold.
func reference(d *openapi.Document, at string) string {
	property, _ := d.At(at).(map[string]any)
	for _, key := range []string{"anyOf", "allOf"} {
		if list, ok := property[key].([]any); ok {
			if first, ok := list[0].(map[string]any); ok {
				return strings.TrimPrefix(fmt.Sprint(first["$ref"]), "#")
			}
		}
	}
	return at
}

// texts are the strings of v, which is one or a list, sorted.
func texts(v any) []string {
	var list []string
	switch v := v.(type) {
	case string:
		list = append(list, v)
	case []any:
		for _, element := range v {
			list = append(list, fmt.Sprint(element))
		}
	}
	slices.Sort(list)
	return list
}

// The constants of the package are the values that the schemas allow.
func TestSchemasMatchConstants(t *testing.T) {
	d := document(t)
	constants := constantsByPrefix(t)
	for prefix, at := range map[string]string{
		"Status":  schemas + "Exit/properties/status/enum",
		"Sandbox": schemas + "SandboxStatus/properties/state/enum",
		"Problem": schemas + "Problem/properties/type/enum",
	} {
		want := constants[prefix]
		if prefix == "Problem" {
			for i := range want {
				want[i] = "urn:preheat:problem:" + want[i]
			}
			want = append(want, "about:blank")
		}
		slices.Sort(want)
		if got := texts(d.At(at)); len(want) < 3 || !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %q, the constants are %q", at, got, want)
		}
	}
	if got, want := slices.Concat(texts(d.At(schemas+"SessionResult/properties/state/enum")), texts(d.At(schemas+"Problem/properties/reason/enum"))), constants["Session"]; !same(got, want) {
		t.Errorf("states and ends of sessions: %q instead of %q", got, want)
	}
	var result []string
	for _, s := range constants["Status"] {
		if s != string(execution.StatusPlatformError) {
			result = append(result, s)
		}
	}
	slices.Sort(result)
	if got := texts(d.At(schemas + "Result/properties/status/enum")); !slices.Equal(got, result) {
		t.Errorf("a result's status: %q instead of %q", got, result)
	}
	events, _ := d.At("/paths/~1v1~1sandbox~1execute/post/responses/200/content/text~1event-stream/x-events").(map[string]any)
	if got, want := slices.Sorted(maps.Keys(events)), slices.Sorted(slices.Values(constants["Event"])); !slices.Equal(got, want) {
		t.Errorf("events: %q instead of %q", got, want)
	}
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// constantsByPrefix are the values of the package's string constants, by the
// first word of their names.
func constantsByPrefix(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			for _, prefix := range []string{"Status", "Sandbox", "Problem", "Event", "Session"} {
				literal, ok := spec.Values[0].(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING || !strings.HasPrefix(spec.Names[0].Name, prefix) {
					continue
				}
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[prefix] = append(found[prefix], value)
			}
			return true
		})
	}
	return found
}

func TestExamplesAreValid(t *testing.T) {
	d := document(t)
	examples := d.Examples()
	if len(examples) < 10 {
		t.Errorf("%d examples", len(examples))
	}
	for _, e := range examples {
		if err := d.Validate(e.Schema, e.Value); err != nil {
			t.Errorf("%s: %v", e.Where, err)
		}
	}
	stream := "/paths/~1v1~1sandbox~1execute/post/responses/200/content/text~1event-stream"
	text, _ := d.At(stream + "/examples/hello/value").(string)
	events, err := openapi.ParseEvents([]byte(text))
	if err != nil || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, e := range events {
		if err := d.ValidateJSON(stream+"/x-events/"+e.Name, []byte(e.Data)); err != nil {
			t.Error(err)
		}
	}
}

// Every schema compiles, and says what each of its members is.
func TestSchemasAreDescribed(t *testing.T) {
	d := document(t)
	all, _ := d.At("/components/schemas").(map[string]any)
	for name, schema := range all {
		if err := d.Validate(schemas+name, true); err == nil {
			t.Errorf("%s allows a boolean", name)
		} else if strings.Contains(err.Error(), "the schema at") {
			t.Error(err)
		}
		object, _ := schema.(map[string]any)
		if object["description"] == nil {
			t.Errorf("%s has no description", name)
		}
		properties, _ := object["properties"].(map[string]any)
		for member, property := range properties {
			p, _ := property.(map[string]any)
			if p["description"] == nil && p["$ref"] == nil {
				t.Errorf("%s.%s has no description", name, member)
			}
		}
	}
}

// What the schema of a request allows is what the server takes.
func TestRequestSchemaIsWhatIsTaken(t *testing.T) {
	d := document(t)
	with := func(members string) string { return `{"language": "python", "code": "1", ` + members + `}` }
	for document, want := range map[string]bool{
		`{"language": "python", "code": "1"}`: true, `{"code": "1"}`: false, `{"language": "python"}`: false, `{}`: false, `[]`: false, `null`: false,
		`{"language": "", "code": "1"}`: false, `{"language": "python", "code": " \n"}`: false, `{"language": null, "code": "1"}`: false,
		`{"language": "python", "code": null}`: false, `{"language": "python", "code": 1}`: false,
		with(`"stdin": null, "args": null, "env": null, "files": null, "limits": null, "pool": null`): true,
		with(`"x": 1`): false, with(`"stdin": 1`): false, with(`"pool": ""`): true, with(`"pool": 1`): false,
		with(`"args": ["", "a"]`): true, with(`"args": [null]`): false, with(`"args": ["\u0000"]`): false, with(`"args": "a"`): false,
		with(`"env": {"A": "\n"}`): true, with(`"env": {"A": null}`): false, with(`"env": {"": "a"}`): false, with(`"env": {"A=": "a"}`): false,
		with(`"env": {"PREHEAT_A": "a"}`): false, with(`"env": {"_PREHEAT": "a"}`): false, with(`"env": {"A_PREHEAT": "a"}`): true, with(`"env": {"A": "\u0000"}`): false,
		with(`"files": [{"path": "a/b"}]`): true, with(`"files": [{"path": "a", "content": null, "encoding": null}]`): true, with(`"files": [null]`): false,
		with(`"files": [{"path": ""}]`): false, with(`"files": [{"content": ""}]`): false, with(`"files": [{"path": "a", "mode": 1}]`): false,
		with(`"files": [{"path": "../a"}]`): false, with(`"files": [{"path": "/a"}]`): false, with(`"files": [{"path": "a/../b"}]`): false,
		with(`"files": [{"path": "a/./b"}]`): false, with(`"files": [{"path": "a//b"}]`): false, with(`"files": [{"path": "a/"}]`): false,
		with(`"files": [{"path": "..a"}]`): true, with(`"files": [{"path": "a..b/..."}]`): true, with(`"files": [{"path": "a\u0000"}]`): false,
		with(`"files": [{"path": "main.py"}]`): false, with(`"files": [{"path": "main.py/a"}]`): false, with(`"files": [{"path": "a/main.py"}]`): true,
		with(`"files": [{"path": "main.pyc"}]`): true, with(`"files": [{"path": "a", "encoding": "hex"}]`): false, with(`"files": [{"path": "a", "encoding": ""}]`): true,
		with(`"limits": {}`): true, with(`"limits": {"timeout_seconds": 0.5, "output_bytes": 0}`): true, with(`"limits": {"timeout_seconds": -1}`): false,
		with(`"limits": {"timeout_seconds": "1"}`): false, with(`"limits": {"output_bytes": 1.5}`): false, with(`"limits": {"output_bytes": -1}`): false,
		with(`"limits": {"memory_bytes": null}`): true, with(`"limits": {"cpu": 1}`): false, with(`"limits": []`): false,
	} {
		r, problem := execution.Decode([]byte(document))
		if problem == nil {
			_, problem = r.Validate(languages(), execution.DefaultLimits())
		}
		if taken := problem == nil; taken != want {
			t.Errorf("%s: taken: %v, %v", document, taken, problem)
		}
		if err := d.ValidateJSON(schemas+"Request", []byte(document)); (err == nil) != want {
			t.Errorf("%s: by the schema: %v", document, err)
		}
	}
}
