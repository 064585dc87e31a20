package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// completion is what chat itself needs to know of a request to
// /v1/chat/completions. All else in it is between the client and the model.
type completion struct {
	body   []byte
	model  string
	stream bool

	// open is the offset after the object's opening brace, and empty says
	// that nothing follows but the closing one. modelAt are the offsets of
	// the model's value, when the member is there.
	open    int64
	empty   bool
	modelAt [2]int64
}

// parseCompletion reads the request's own members. Its error says where the
// body is not JSON.
func parseCompletion(body []byte) (*completion, error) {
	c := &completion{body: body}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if d.PeekKind() != '{' {
		if _, err := d.ReadValue(); err != nil {
			return nil, syntax(err)
		}
		return nil, errors.New("the body must be a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, syntax(err)
	}
	c.open, c.empty = d.InputOffset(), d.PeekKind() == '}'
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, syntax(err)
		}
		member := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, syntax(err)
		}
		if err := c.member(member, value, d.InputOffset()); err != nil {
			return nil, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, syntax(err)
	}
	if rest := body[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("the body is not JSON: data after the object at byte %d", d.InputOffset())
	}
	return c, nil
}

func (c *completion) member(name string, value jsontext.Value, end int64) error {
	switch name {
	case "model":
		c.modelAt = [2]int64{end - int64(len(value)), end}
		if value.Kind() != '"' && value.Kind() != 'n' {
			return errors.New("model must be a string")
		}
		return json.Unmarshal(value, &c.model)
	case "stream":
		switch value.Kind() {
		case 't', 'f', 'n':
			c.stream = value.Kind() == 't'
		default:
			return errors.New("stream must be a boolean")
		}
	}
	return nil
}

// withModel returns the body for a server whose default model is model. It is
// the client's own, but for the model where the client named none.
func (c *completion) withModel(model string) []byte {
	if c.model != "" || model == "" {
		return c.body
	}
	name, err := json.Marshal(model)
	if err != nil {
		return c.body
	}
	if c.modelAt[1] > 0 {
		return bytes.Join([][]byte{c.body[:c.modelAt[0]], name, c.body[c.modelAt[1]:]}, nil)
	}
	member := append([]byte(`"model":`), name...)
	if !c.empty {
		member = append(member, ',')
	}
	return bytes.Join([][]byte{c.body[:c.open], member, c.body[c.open:]}, nil)
}

func syntax(err error) error {
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		return fmt.Errorf("the body is not JSON: %v at byte %d", s.Err, s.ByteOffset)
	}
	return fmt.Errorf("the body is not JSON: %w", err)
}
