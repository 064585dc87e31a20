package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// Each problem that a request alone can cause. Streams are refused alike.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		kind               execution.ProblemType
		field              string
	}{
		"malformed":        {"POST", pathExecute, `{"code": tru}`, nil, 400, execution.ProblemMalformed, ""},
		"not an object":    {"POST", pathExecute, `null`, nil, 400, execution.ProblemMalformed, ""},
		"bad event":        {"POST", "/", `{}`, []string{"Ce-Specversion", "1.0"}, 400, execution.ProblemMalformed, "id"},
		"foreign host":     {"GET", "/v1/pools", ``, []string{"Host", "evil.example"}, 403, execution.ProblemForbidden, ""},
		"foreign origin":   {"POST", pathExecute, `{}`, []string{"Origin", "https://evil.example"}, 403, execution.ProblemForbidden, ""},
		"no such path":     {"GET", "/v1/sandbox", ``, nil, 404, execution.ProblemNotFound, ""},
		"unknown language": {"POST", pathExecute, `{"language": "cobol", "code": "1"}`, nil, 404, execution.ProblemNotFound, "language"},
		"unknown pool":     {"POST", pathExecute, `{"language": "py", "code": "1", "pool": "x"}`, nil, 404, execution.ProblemNotFound, "pool"},
		"not offered":      {"POST", pathExecute, `{"language": "py", "code": "1", "pool": "javascript"}`, nil, 404, execution.ProblemNotFound, "language"},
		"method":           {"GET", pathExecute, ``, nil, 405, execution.ProblemMethodNotAllowed, ""},
		"other method":     {"PUT", "/v1/languages", `{}`, nil, 405, execution.ProblemMethodNotAllowed, ""},
		"large":            {"POST", pathExecute, "{" + strings.Repeat(" ", 24<<20), nil, 413, execution.ProblemTooLarge, ""},
		"very large":       {"POST", pathExecute, strings.Repeat(" ", 33<<20), nil, 413, execution.ProblemTooLarge, ""},
		"text":             {"POST", pathExecute, `{}`, []string{contentType, "text/plain"}, 415, execution.ProblemUnsupportedMedia, ""},
		"batch":            {"POST", "/", `[]`, []string{contentType, "application/cloudevents-batch+json"}, 415, execution.ProblemUnsupportedMedia, ""},
		"invalid":          {"POST", pathExecute, `{"language": "py", "code": "1", "limits": {"timeout_seconds": 301}}`, nil, 422, execution.ProblemInvalidValue, "limits.timeout_seconds"},
		"headers":          {"POST", pathExecute, `{}`, []string{"X-Large", strings.Repeat("x", 20<<10)}, 431, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, media := range []string{"*/*", execution.MediaSSE} {
				header := append([]string{contentType, execution.MediaJSON, accept, media}, test.header...)
				res, body := do(t, shared, test.method, test.path, strings.NewReader(test.body), header...)
				if res.StatusCode != test.status {
					t.Fatalf("status %d: %.500s", res.StatusCode, body)
				}
				var p execution.Problem
				if err := json.Unmarshal(body, &p); err != nil {
					t.Fatal(err)
				}
				if p.APIError == nil || p.APIError.Message != p.Error() || p.Message != p.Error() {
					t.Errorf("not where SDKs look: %s", body)
				}
				if p.Field != test.field || test.kind != "" && !p.IsKind(test.kind) {
					t.Errorf("%s", body)
				}
			}
		})
	}
}

// CASES.md W7: without a sandbox everything is told to come back later, with
// nothing else changed.
func TestNoSandbox(t *testing.T) {
	p := product.Start(t, "PREHEAT_POOL_SIZE=1", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_MAX_SANDBOXES=1",
		"PREHEAT_QUEUE_TIMEOUT=200ms", "PREHEAT_EVENT_QUEUE_TIMEOUT=200ms")
	busy, end := occupy(t, p)
	request := `{"language": "python", "code": "print(1)"}`
	event := `{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": ` + request + `}`
	for name, test := range map[string]struct {
		path, body string
		header     []string
	}{
		"JSON":       {pathExecute, request, nil},
		"stream":     {pathExecute, request, []string{accept, execution.MediaSSE}},
		"binary":     {"/", request, binaryEvent("1")},
		"structured": {"/", event, []string{contentType, execution.MediaCloudEvent}},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := post(t, p, http.StatusTooManyRequests, test.path, test.body, test.header...)
			var problem execution.Problem
			if err := json.Unmarshal(body, &problem); err != nil || !problem.IsKind(execution.ProblemNoSandbox) || problem.RetryAfterSeconds < 1 || problem.Waiting == nil {
				t.Errorf("%s, %v", body, err)
			}
		})
	}
	end()
	<-busy
	product.Eventually(t, patience, "the server serves again", func() bool {
		res, _, err := p.Do(t.Context(), pathExecute, request)
		return err == nil && res.StatusCode == http.StatusOK
	})
}
