package execution_test

import (
	"encoding/json"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// SDKs of other services find the message, the field and the code where they
// look for them.
func TestProblemWithAPIError(t *testing.T) {
	noSandbox := execution.NewProblem(execution.ProblemNoSandbox, "Wait.")
	for name, test := range map[string]struct {
		problem                    *execution.Problem
		message, kind, param, code string
	}{
		"field":    {execution.Invalid("env", "It is too large."), "env: It is too large.", "invalid_request_error", "env", "invalid_value"},
		"busy":     {noSandbox, "Wait.", "rate_limit_error", "", "no_sandbox"},
		"refused":  {execution.NewProblem(execution.ProblemForbidden, "No."), "No.", "permission_error", "", "forbidden"},
		"platform": {execution.NewProblem(execution.ProblemSandboxLost, "Gone."), "Gone.", "server_error", "", "sandbox_lost"},
		"plain":    {&execution.Problem{Type: "about:blank", Status: 408, Detail: "Late."}, "Late.", "invalid_request_error", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(test.problem.WithAPIError())
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Detail, Message, Code string
				Error                 map[string]*string
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			e := got.Error
			if got.Detail != test.problem.Detail || got.Message != test.message || got.Code != test.code ||
				text(e["message"]) != test.message || text(e["type"]) != test.kind || text(e["param"]) != test.param || text(e["code"]) != test.code {
				t.Errorf("%s", body)
			}
			if len(e) != 4 {
				t.Errorf("members are missing: %s", body)
			}
		})
	}
	if noSandbox.APIError != nil || noSandbox.Message != "" {
		t.Error("the problem itself was changed")
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
