package demo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/functions/chat/demo"
)

const question = "Write Python code that generates a random excuse"

func schema(t *testing.T, text string) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCompleteCallsTools(t *testing.T) {
	runner := demo.Tool{Name: "run_code", Parameters: schema(t, `{"type": "object", "required": ["language", "code"], "properties": {"language": {"type": "string"}, "code": {"type": "string"}}}`)}
	weather := demo.Tool{Name: "weather", Parameters: schema(t, `{"type": "object", "required": ["city", "days"], "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"type": "string"}}}`)}
	user := demo.Message{Role: "user", Text: question}
	for name, test := range map[string]struct {
		request demo.Request
		call    string // empty: none
		has     string
	}{
		"runs its code":     {demo.Request{Messages: []demo.Message{user}, Tools: []demo.Tool{weather, runner}}, "run_code", `"language":"python"`},
		"no tool for it":    {demo.Request{Messages: []demo.Message{user}, Tools: []demo.Tool{weather}}, "", "import random"},
		"no code":           {demo.Request{Messages: []demo.Message{{Role: "user", Text: "hi"}}, Tools: []demo.Tool{runner}}, "", "demo model"},
		"must":              {demo.Request{Messages: []demo.Message{user}, Tools: []demo.Tool{weather}, MustCall: true}, "weather", `"days":0`},
		"the named one":     {demo.Request{Messages: []demo.Message{user}, Tools: []demo.Tool{runner, weather}, MustCall: true, Function: "weather"}, "weather", `"city":"` + question},
		"shows the result":  {demo.Request{Messages: []demo.Message{user, {Role: "tool", Text: "42\n"}}, Tools: []demo.Tool{runner}}, "", "42\n```"},
		"optional left out": {demo.Request{Messages: []demo.Message{user}, Tools: []demo.Tool{weather}, MustCall: true}, "weather", `}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := demo.Complete(test.request)
			if test.call == "" {
				if got.Call != nil || got.Finish != demo.FinishStop || !strings.Contains(got.Text, test.has) {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Call == nil || got.Call.Name != test.call || got.Finish != demo.FinishCall || !strings.Contains(got.Call.Arguments, test.has) || strings.Contains(got.Call.Arguments, "unit") {
				t.Errorf("%+v %+v", got, got.Call)
			}
		})
	}
}

func TestCompleteIsCut(t *testing.T) {
	user := []demo.Message{{Role: "user", Text: question}}
	whole := demo.Complete(demo.Request{Messages: user})
	if got := demo.Complete(demo.Request{Messages: user, MaxTokens: 3}); got.Finish != demo.FinishLength || len(demo.Pieces(got.Text)) != 3 || !strings.HasPrefix(whole.Text, got.Text) {
		t.Errorf("%+v", got)
	}
	if got := demo.Complete(demo.Request{Messages: user, Stop: []string{"", "never there", "import"}}); got.Finish != demo.FinishStop || strings.Contains(got.Text, "import") || !strings.HasPrefix(whole.Text, got.Text+"import") {
		t.Errorf("%+v", got)
	}
}

func TestCompleteInJSON(t *testing.T) {
	user := []demo.Message{{Role: "user", Text: "hi"}}
	for _, s := range []string{"", `{"type": "object", "required": ["a", "n", "e", "l"], "properties": {"a": {"type": ["string", "null"]}, "n": {"type": "number"}, "e": {"enum": ["x", "y"]}, "l": {"type": "array"}, "o": {}}}`} {
		r := demo.Request{Messages: user, JSON: true}
		want := []string{"answer"}
		if s != "" {
			r.Schema, want = schema(t, s), []string{"a", "n", "e", "l"}
		}
		got := schema(t, demo.Complete(r).Text)
		if len(got) != len(want) {
			t.Errorf("%v", got)
		}
		for _, name := range want {
			if got[name] == nil {
				t.Errorf("%s is missing in %v", name, got)
			}
		}
	}
}
