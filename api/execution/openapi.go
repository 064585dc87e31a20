package execution

import _ "embed"

//go:embed openapi.yaml
var openAPI []byte

//go:embed asyncapi.yaml
var asyncAPI []byte

// OpenAPI returns the OpenAPI document of the HTTP API, in YAML. The caller
// must not change it.
func OpenAPI() []byte { return openAPI }

// AsyncAPI returns the AsyncAPI document of the events, in YAML. It refers to
// the OpenAPI document as its neighbour. The caller must not change it.
func AsyncAPI() []byte { return asyncAPI }
