package execution

import _ "embed"

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the OpenAPI document of the HTTP API, in YAML. The caller
// must not change it.
func OpenAPI() []byte { return openAPI }
