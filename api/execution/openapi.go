package execution

import _ "embed"

//go:embed openapi.yaml
var openAPI []byte

//go:embed tools.json
var toolsAPI []byte

//go:embed asyncapi.yaml
var asyncAPI []byte

// OpenAPI returns the OpenAPI document of the HTTP API, in YAML. The caller
// must not change it.
func OpenAPI() []byte { return openAPI }

// ToolsAPI returns a small OpenAPI document, in JSON, for programs that make a
// tool for a language model of each operation: a part of OpenAPI, in words for
// models. The caller must not change it.
func ToolsAPI() []byte { return toolsAPI }

// AsyncAPI returns the AsyncAPI document of the events, in YAML. It refers to
// the OpenAPI document as its neighbour. The caller must not change it.
func AsyncAPI() []byte { return asyncAPI }
