package cloudevent

import (
	"encoding/base64"
	"mime"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/preheat-dev/preheat/api/execution"
)

// Members of a structured event that are not attributes.
const (
	memberData       = "data"
	memberDataBase64 = "data_base64"
)

// readStructured reads an event in structured mode.
func readStructured(body []byte) (*received, *execution.Problem) {
	members, problem := execution.DecodeObject(body)
	if problem != nil {
		return nil, problem
	}
	r := &received{attributes: map[string]string{}, typed: map[string]any{}}
	for name, value := range members {
		if problem := r.take(name, value); problem != nil {
			return nil, problem
		}
	}
	data, encoded := members[memberData], members[memberDataBase64]
	switch {
	case data != nil && encoded != nil:
		return nil, badAttribute(memberDataBase64, "The event has data twice.")
	case encoded != nil:
		return r, r.decodeBase64(encoded)
	case data != nil:
		return r, r.decodeData(data)
	}
	return r, nil
}

// take takes an attribute of the right JSON type.
func (r *received) take(name string, value jsontext.Value) *execution.Problem {
	switch {
	case name == memberData || name == memberDataBase64:
	case name != strings.ToLower(name):
		return badAttribute(clip(name), "The name of an attribute has lower-case letters and digits only.")
	case value.Kind() == 'n':
	case value.Kind() == '"':
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return badAttribute(clip(name), "The value is not a string.")
		}
		r.attributes[name] = string(text)
	default:
		typed := scalar(value)
		if typed == nil || !isExtension(name) {
			return badAttribute(clip(name), "The value is not of a type that CloudEvents knows.")
		}
		r.attributes[name], r.typed[name] = string(value), typed
	}
	return nil
}

// scalar is what an extension may be beside a string, or nil: a boolean or a
// whole number of 32 bits.
func scalar(value jsontext.Value) any {
	switch value.Kind() {
	case 't':
		return true
	case 'f':
		return false
	}
	if n, err := strconv.ParseInt(string(value), 10, 32); err == nil {
		return int32(n)
	}
	return nil
}

// decodeBase64 takes data as bytes.
func (r *received) decodeBase64(value jsontext.Value) *execution.Problem {
	var err error
	if r.data, err = jsontext.AppendUnquote(nil, value); err == nil {
		r.data, err = base64.StdEncoding.DecodeString(string(r.data))
	}
	if err != nil {
		return badAttribute(memberDataBase64, "The value is not base64.")
	}
	return nil
}

// decodeData takes data as a JSON value, or as text where it is not JSON by its
// type.
func (r *received) decodeData(value jsontext.Value) *execution.Problem {
	media, _, err := mime.ParseMediaType(r.attributes["datacontenttype"])
	if err == nil && strings.Contains(media, "/") && !strings.HasSuffix(media, "/json") && !strings.HasSuffix(media, "+json") {
		if r.data, err = jsontext.AppendUnquote(nil, value); err != nil {
			return badAttribute(memberData, "Data that is not JSON by its type must be a string.")
		}
		return nil
	}
	value = value.Clone()
	if err := value.Compact(); err != nil {
		return badAttribute(memberData, "The data is not JSON.")
	}
	r.data = value
	return nil
}

func isExtension(name string) bool {
	switch name {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", memberDataBase64:
		return false
	}
	return true
}
