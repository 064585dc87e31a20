// Package openapi checks HTTP responses against an OpenAPI 3.1 document. It is
// stricter than a client should be: a response fails when its status, content
// type, event or any member of its body is not in the document.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// folder holds documents, and base is the name under which schemas refer to
// the one that they are in.
const (
	folder = "http://localhost/"
	base   = folder + "this.json"
)

// Document is a parsed document. It is safe for use by several goroutines.
type Document struct {
	root map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// Parse reads a document in YAML.
func Parse(text []byte) (*Document, error) {
	root, err := read(text)
	if err != nil {
		return nil, err
	}
	d := &Document{root: root, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	d.compiler.AssertContent()
	if err := d.compiler.AddResource(base, root); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return d, nil
}

// AddNeighbour adds another document in YAML, to which schemas may refer by a
// file name. It must be called before any schema is used.
func (d *Document) AddNeighbour(name string, text []byte) error {
	root, err := read(text)
	if err != nil {
		return err
	}
	if err := d.compiler.AddResource(folder+name, root); err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	return nil
}

func read(text []byte) (map[string]any, error) {
	converted, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(converted))
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("openapi: the document is not an object")
	}
	closeSchemas(root)
	return root, nil
}

// closeSchemas refuses the members that a schema does not list, where it
// does not say whether it does.
func closeSchemas(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, hasProperties := v["properties"].(map[string]any)
		if _, says := v["additionalProperties"]; hasProperties && !says && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, member := range v {
			closeSchemas(member)
		}
	case []any:
		for _, element := range v {
			closeSchemas(element)
		}
	}
}

// At returns what stands at a JSON pointer such as "/components/schemas", or
// nil.
func (d *Document) At(pointer string) any {
	var v any = d.root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return v
}

// Object is At for an object, in the place of which a reference may stand. It
// also returns where it found it.
func (d *Document) Object(pointer string) (map[string]any, string) {
	object, _ := d.At(pointer).(map[string]any)
	if ref, ok := object["$ref"].(string); ok {
		return d.Object(strings.TrimPrefix(ref, "#"))
	}
	return object, pointer
}

// Escape makes a name a token of a JSON pointer.
func Escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// Validate checks a value, as encoding/json decodes it, against the schema at
// a pointer.
func (d *Document) Validate(pointer string, value any) error {
	schema, err := d.schema(pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// ValidateJSON checks a JSON text against the schema at a pointer.
func (d *Document) ValidateJSON(pointer string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if err := d.Validate(pointer, value); err != nil {
		return fmt.Errorf("%w\nin %.2000s", err, text)
	}
	return nil
}

func (d *Document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(base + "#" + pointer)
	if err != nil {
		return nil, fmt.Errorf("the schema at %s: %w", pointer, err)
	}
	d.compiled[pointer] = s
	return s, nil
}

// Example is one example of the document, and where its schema stands.
type Example struct {
	Where, Schema string
	Value         any
}

// Examples lists the examples of media types and of schemas.
func (d *Document) Examples() []Example {
	var found []Example
	d.examples("", d.root, &found)
	return found
}

func (d *Document) examples(where string, v any, found *[]Example) {
	switch v := v.(type) {
	case map[string]any:
		_, isMedia := v["schema"]
		if value, ok := v["example"]; ok && isMedia {
			*found = append(*found, Example{where + "/example", where + "/schema", value})
		}
		switch examples := v["examples"].(type) {
		case map[string]any: // of a media type
			for name := range examples {
				if object, at := d.Object(where + "/examples/" + Escape(name)); isMedia {
					*found = append(*found, Example{at, where + "/schema", object["value"]})
				}
			}
		case []any: // of a schema
			for i, value := range examples {
				*found = append(*found, Example{fmt.Sprintf("%s/examples/%d", where, i), where, value})
			}
		}
		for name, member := range v {
			d.examples(where+"/"+Escape(name), member, found)
		}
	case []any:
		for i, element := range v {
			d.examples(fmt.Sprintf("%s/%d", where, i), element, found)
		}
	}
}

// Operations lists the operations, as "GET /path".
func (d *Document) Operations() []string {
	var list []string
	paths, _ := d.At("/paths").(map[string]any)
	for path, item := range paths {
		for method, operation := range item.(map[string]any) {
			if _, ok := operation.(map[string]any); ok {
				list = append(list, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return list
}

// number reads an integer of a decoded document.
func number(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}
