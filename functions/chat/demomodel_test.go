package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/functions/chat"
)

const demoTools = `"tools": [{"type": "function", "function": {"name": "run_python", "parameters": {"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}}}}}]`

func demoBody(members string) string {
	return fmt.Sprintf(`{"messages": [{"role": "user", "content": "Write Python code that generates a random excuse"}], %s}`, members)
}

// A tool loop as every SDK runs it: the model calls, the client answers, and the
// model says what the tool said.
func TestDemoModelCallsTools(t *testing.T) {
	f := serveChat(t, chat.Options{Config: testConfig()})
	got := f.complete(t, demoBody(demoTools))
	var answer struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || len(answer.Choices) != 1 || answer.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%v %s", err, got.body)
	}
	var message struct {
		Content   *string
		ToolCalls []struct {
			ID, Type string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(answer.Choices[0].Message, &message); err != nil || len(message.ToolCalls) != 1 || message.Content != nil {
		t.Fatalf("%v %s", err, got.body)
	}
	var arguments struct{ Code string }
	if call := message.ToolCalls[0]; json.Unmarshal([]byte(call.Function.Arguments), &arguments) != nil || call.ID == "" || call.Type != "function" || !strings.Contains(arguments.Code, "import random") {
		t.Errorf("%+v", call)
	}
	again := fmt.Sprintf(`{"messages": [{"role": "user", "content": "an excuse in Python"}, %s, {"role": "tool", "tool_call_id": "1", "content": "Sorry!"}], %s}`, answer.Choices[0].Message, demoTools)
	if got := f.complete(t, again); !strings.Contains(got.body, "Sorry!") || !strings.Contains(got.body, `"finish_reason":"stop"`) {
		t.Errorf("%s", got.body)
	}
	stream := f.complete(t, demoBody(`"stream": true, `+demoTools))
	if !strings.Contains(stream.body, `"tool_calls":[{"index":0,"id":"call_`) || !strings.Contains(stream.body, `"finish_reason":"tool_calls"`) || !strings.HasSuffix(stream.body, "data: [DONE]\n\n") {
		t.Errorf("%s", stream.body)
	}
}

func TestDemoModelTakesParameters(t *testing.T) {
	f := serveChat(t, chat.Options{Config: testConfig()})
	for members, want := range map[string][]string{
		`"n": 2`:                              {`"index":1`},
		`"max_tokens": 2`:                     {`"finish_reason":"length"`, `"completion_tokens":2`},
		`"stop": "import"`:                    {`"finish_reason":"stop"`},
		`"tool_choice": "none", ` + demoTools: {`"content":"`},
		`"response_format": {"type": "json_object"}`:         {`"content":"{\"answer\":`},
		`"temperature": 0, "n": null, "stop": null`:          {`"refusal":null`, `"logprobs":null`},
		`"n": 2, "max_completion_tokens": 1, "stream": true`: {`"index":1,"delta":{},"logprobs":null,"finish_reason":"length"`},
	} {
		got := f.complete(t, demoBody(members))
		for _, part := range want {
			if got.status != 200 || !strings.Contains(got.body, part) {
				t.Errorf("%s: %d, no %s in %s", members, got.status, part, got.body)
			}
		}
	}
	for members, field := range map[string]string{
		`"n": 0`: "n", `"n": 1000`: "n", `"max_tokens": 0`: "max_tokens", `"stop": 1`: "stop", `"stop": ["a", "b", "c", "d", "e"]`: "stop",
		`"tool_choice": "required"`: "tool_choice", `"tool_choice": {"type": "function", "function": {"name": "x"}}`: "tool_choice",
		`"response_format": {"type": "xml"}`: "response_format.type", `"n": "a"`: "n",
	} {
		if got := f.complete(t, demoBody(members)); got.status != 400 || !strings.Contains(got.body, fmt.Sprintf(`"param":%q`, field)) {
			t.Errorf("%s: %d %s", members, got.status, got.body)
		}
	}
}
