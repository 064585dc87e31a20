package chat

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/preheat-dev/preheat/functions/chat/demo"
)

// Bounds on what the demo model is asked for at once.
const (
	maxDemoChoices = 8
	maxDemoStops   = 4
)

// conversation is what the demo model reads of a request.
type conversation struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema map[string]any `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	N                   *int            `json:"n"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stop                json.RawMessage `json:"stop"`
}

// demoRequest is what the demo model is asked for.
type demoRequest struct {
	demo.Request
	choices int
	usage   bool
}

// fieldError is about one member of a request.
type fieldError struct {
	field string
	error
}

func wrong(field, format string, args ...any) error {
	return &fieldError{field, fmt.Errorf(field+": "+format, args...)}
}

func parseDemoRequest(body []byte) (*demoRequest, error) {
	var c conversation
	if err := json.Unmarshal(body, &c); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			return nil, wrong(t.Field, "a %s is not what belongs here", t.Value)
		}
		return nil, err
	}
	r := &demoRequest{choices: 1, usage: c.StreamOptions.IncludeUsage}
	if len(c.Messages) == 0 {
		return nil, wrong("messages", "it must not be empty")
	}
	for i, m := range c.Messages {
		text, err := contentText(m.Content)
		if err != nil {
			return nil, wrong(fmt.Sprintf("messages[%d].content", i), "%w", err)
		}
		r.Messages = append(r.Messages, demo.Message{Role: m.Role, Text: text})
	}
	return r, errors.Join(r.setTools(&c), r.setForm(&c), r.setStop(c.Stop))
}

// setTools sets which tools there are and whether one must be called.
func (r *demoRequest) setTools(c *conversation) error {
	for i, t := range c.Tools {
		if t.Function.Name == "" {
			return wrong(fmt.Sprintf("tools[%d].function.name", i), "it is missing")
		}
		r.Tools = append(r.Tools, demo.Tool{Name: t.Function.Name, Parameters: t.Function.Parameters})
	}
	if len(c.ToolChoice) == 0 || string(c.ToolChoice) == "null" {
		return nil
	}
	var word string
	if json.Unmarshal(c.ToolChoice, &word) == nil {
		switch word {
		case "auto":
		case "none":
			r.Tools = nil
		case "required":
			if r.MustCall = true; len(r.Tools) == 0 {
				return wrong("tool_choice", "there are no tools")
			}
		default:
			return wrong("tool_choice", "%.64q is none of auto, none and required", word)
		}
		return nil
	}
	var named struct {
		Function struct{ Name string }
	}
	if err := json.Unmarshal(c.ToolChoice, &named); err != nil || named.Function.Name == "" {
		return wrong("tool_choice", "it names no function")
	}
	for _, t := range r.Tools {
		if t.Name == named.Function.Name {
			r.MustCall, r.Function = true, t.Name
			return nil
		}
	}
	return wrong("tool_choice", "%.64q is not among the tools", named.Function.Name)
}

// setForm sets what form the answers have and how many there are.
func (r *demoRequest) setForm(c *conversation) error {
	switch c.ResponseFormat.Type {
	case "", "text":
	case "json_object":
		r.JSON = true
	case "json_schema":
		if r.JSON, r.Schema = true, c.ResponseFormat.JSONSchema.Schema; r.Schema == nil {
			return wrong("response_format.json_schema.schema", "it is missing")
		}
	default:
		return wrong("response_format.type", "%.64q is none of text, json_object and json_schema", c.ResponseFormat.Type)
	}
	if c.N != nil {
		if r.choices = *c.N; r.choices < 1 || r.choices > maxDemoChoices {
			return wrong("n", "it must be from 1 to %d", maxDemoChoices)
		}
	}
	return errors.Join(r.setMax("max_tokens", c.MaxTokens), r.setMax("max_completion_tokens", c.MaxCompletionTokens))
}

func (r *demoRequest) setMax(field string, n *int) error {
	if n == nil {
		return nil
	}
	if *n < 1 {
		return wrong(field, "it must be at least 1")
	}
	r.MaxTokens = *n
	return nil
}

// setStop sets the texts before which answers end.
func (r *demoRequest) setStop(raw json.RawMessage) error {
	var one *string
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &one) == nil:
		if one != nil {
			r.Stop = []string{*one}
		}
	case json.Unmarshal(raw, &r.Stop) != nil || len(r.Stop) > maxDemoStops:
		return wrong("stop", "it must be a string or a list of up to %d", maxDemoStops)
	}
	return nil
}

// contentText returns the text of a content, which is a string or a list of
// parts.
func contentText(raw json.RawMessage) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", errors.New("neither a string nor a list of parts")
	}
	for _, p := range parts {
		text += p.Text + " "
	}
	return text, nil
}
