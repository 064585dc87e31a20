package contract

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// A program that makes tools of /openapi.json calls them as Open WebUI does: the
// model's arguments are the whole body.
func TestToolsOfDocument(t *testing.T) {
	_, text := do(t, shared, http.MethodGet, "/openapi.json", nil)
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	call := func(tool, arguments string) string {
		for path, methods := range document.Paths {
			for method, operation := range methods {
				if operation.OperationID == tool {
					res, body := do(t, shared, strings.ToUpper(method), path, bytes.NewBufferString(arguments), contentType, "application/json")
					if res.StatusCode != http.StatusOK {
						t.Errorf("%s: status %d: %s", tool, res.StatusCode, body)
					}
					return string(body)
				}
			}
		}
		t.Fatalf("there is no %s", tool)
		return ""
	}
	if got := call("list_languages", ""); !strings.Contains(got, `"name":"python"`) {
		t.Error(got)
	}
	if got := call("run_code", `{"language": "python", "code": "import sys; print(sys.stdin.read(), sys.argv[1:])", "stdin": "in", "args": ["a"]}`); !strings.Contains(got, `"stdout":"in ['a']\n"`) {
		t.Error(got)
	}
}
