package demo

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Request is what a client asks of the model.
type Request struct {
	Messages []Message
	Tools    []Tool
	// MustCall wants a call of a tool, of the one named Function if that is not
	// empty.
	MustCall bool
	Function string
	// JSON wants an object as the answer, one that Schema describes if there is
	// one.
	JSON   bool
	Schema map[string]any
	// Stop are texts before which the answer ends, MaxTokens is how many pieces
	// it may have; 0 is any number.
	Stop      []string
	MaxTokens int
}

// Tool is a function that the client offers.
type Tool struct {
	Name string
	// Parameters is the JSON schema of its arguments.
	Parameters map[string]any
}

// Call asks the client to call a tool.
type Call struct{ Name, Arguments string }

// Reasons for an answer's end, by OpenAI's names.
const (
	FinishStop   = "stop"
	FinishLength = "length"
	FinishCall   = "tool_calls"
)

// Completion is the answer.
type Completion struct {
	Text string
	// Call, if not nil, stands in place of the text.
	Call   *Call
	Finish string
}

// Complete answers r. It calls a tool that runs code with the code that it would
// show otherwise, and shows what the tool returned.
func Complete(r Request) Completion {
	reply := Reply(r.Messages)
	last := Message{}
	if len(r.Messages) > 0 {
		last = r.Messages[len(r.Messages)-1]
	}
	if call := r.call(reply, last); call != nil {
		return Completion{Call: call, Finish: FinishCall}
	}
	if last.Role == "tool" {
		reply = "The tool returned:\n\n" + fence + "text\n" + strings.TrimRight(last.Text, "\n") + "\n" + fence
	}
	if r.JSON {
		reply = object(r.Schema, reply)
	}
	return r.cut(reply)
}

// call is the call of a tool with which r is answered, or nil.
func (r Request) call(reply string, last Message) *Call {
	language, code := block(reply)
	var chosen *Tool
	for i, t := range r.Tools {
		switch {
		case r.Function != "":
			if t.Name == r.Function {
				chosen = &r.Tools[i]
			}
		case chosen == nil && t.runsCode():
			chosen = &r.Tools[i]
		}
	}
	switch {
	case r.MustCall && chosen == nil && r.Function == "" && len(r.Tools) > 0:
		chosen = &r.Tools[0]
	case !r.MustCall && (code == "" || last.Role == "tool"):
		return nil
	}
	if chosen == nil {
		return nil
	}
	arguments, _ := fill(chosen.Parameters, last.Text, 0).(map[string]any)
	if arguments == nil {
		arguments = map[string]any{}
	}
	if chosen.has("code") && code != "" {
		arguments["code"] = code
		if chosen.has("language") {
			arguments["language"] = language
		}
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		text = []byte("{}") // it is made of what was decoded
	}
	return &Call{Name: chosen.Name, Arguments: string(text)}
}

func (t Tool) has(parameter string) bool {
	properties, _ := t.Parameters["properties"].(map[string]any)
	return properties[parameter] != nil
}

// runsCode reports whether t looks like a tool that runs code.
func (t Tool) runsCode() bool {
	name := strings.ToLower(t.Name)
	return t.has("code") && slices.ContainsFunc([]string{"exec", "run", "code", "python"}, func(part string) bool { return strings.Contains(name, part) })
}

// block is the code of the first block of an answer that has a program.
func block(reply string) (language, code string) {
	_, rest, found := strings.Cut(reply, fence)
	if !found {
		return "", ""
	}
	language, rest, _ = strings.Cut(rest, "\n")
	if language == "text" {
		return "", ""
	}
	code, _, _ = strings.Cut(rest, fence)
	return language, code
}

// object is a JSON object that says text, in the form of a schema if there is one.
func object(schema map[string]any, text string) string {
	value := any(map[string]any{"answer": text})
	if schema != nil {
		value = fill(schema, text, 0)
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "{}" // it is made of what was decoded
	}
	return string(b)
}

// maxDepth bounds schemas that contain many others.
const maxDepth = 16

// fill is a value of a schema's type: text wherever a string may stand, and else
// the least there is.
func fill(schema map[string]any, text string, depth int) any {
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	if value, ok := schema["const"]; ok {
		return value
	}
	kind := schema["type"]
	if kinds, ok := kind.([]any); ok && len(kinds) > 0 {
		kind = kinds[0]
	}
	properties, _ := schema["properties"].(map[string]any)
	switch {
	case kind == "object" || properties != nil:
		filled := map[string]any{}
		required, _ := schema["required"].([]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			property, _ := properties[name].(map[string]any)
			if depth < maxDepth && slices.Contains(required, any(name)) {
				filled[name] = fill(property, text, depth+1)
			}
		}
		return filled
	case kind == "array":
		return []any{}
	case kind == "integer", kind == "number":
		return 0
	case kind == "boolean":
		return false
	case kind == "null":
		return nil
	}
	return text
}

// cut ends text where r wants it to end.
func (r Request) cut(text string) Completion {
	for _, stop := range r.Stop {
		if stop != "" {
			text, _, _ = strings.Cut(text, stop)
		}
	}
	pieces := Pieces(text)
	if r.MaxTokens > 0 && len(pieces) > r.MaxTokens {
		return Completion{Text: strings.Join(pieces[:r.MaxTokens], ""), Finish: FinishLength}
	}
	return Completion{Text: text, Finish: FinishStop}
}
