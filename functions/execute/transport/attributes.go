package transport

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cloudevents/sdk-go/v2/binding"
	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/ceheader"
)

// Members of a structured event that are not attributes.
const (
	memberData       = "data"
	memberDataBase64 = "data_base64"
)

// readEvent reads the event that c carries. What is wrong with it is found
// before the SDK reads it, so that the problem can name the attribute.
func readEvent(c *fiber.Ctx, structured bool) (*cloudevent.Event, *execution.Problem) {
	body, header := c.BodyRaw(), http.Header{}
	media := c.Get(fiber.HeaderContentType)
	if media != "" {
		header.Set(fiber.HeaderContentType, media)
	}
	var attributes map[string]string
	var problem *execution.Problem
	if structured {
		if attributes, problem = memberAttributes(body); problem != nil {
			return nil, problem
		}
		// The SDK takes white space before data_base64 for a part of it.
		compact := jsontext.Value(bytes.Clone(body))
		if err := compact.Compact(); err != nil {
			return nil, execution.NewProblem(execution.ProblemMalformed, "The event is not valid JSON.")
		}
		body = compact
	} else {
		if attributes, problem = headerAttributes(c); problem != nil {
			return nil, problem
		}
		for name, value := range attributes {
			header.Set(ceheader.Prefix+name, value)
		}
		if media != "" {
			attributes["datacontenttype"] = media
		}
	}
	if problem := checkAttributes(attributes); problem != nil {
		return nil, problem
	}
	message := cehttp.NewMessage(header, io.NopCloser(bytes.NewReader(body)))
	e, err := binding.ToEvent(c.Context(), message)
	if err == nil {
		err = e.Validate()
	}
	var invalid cloudevent.ValidationError
	switch {
	case errors.As(err, &invalid):
		return nil, badAttribute(slices.Min(slices.Collect(maps.Keys(invalid))), "It is not as CloudEvents wants it.")
	case err != nil:
		return nil, execution.NewProblem(execution.ProblemMalformed, "The event is malformed: %.200s.", err)
	case len(e.Data()) == 0:
		return nil, badAttribute(memberData, "The event has no data.")
	}
	return e, nil
}

func badAttribute(name, detail string) *execution.Problem {
	p := execution.NewProblem(execution.ProblemMalformed, "%s", detail)
	p.Field = name
	return p
}

// memberAttributes are the attributes of an event in structured mode. They,
// and the data, are of the right JSON types.
func memberAttributes(body []byte) (map[string]string, *execution.Problem) {
	members, problem := execution.DecodeObject(body)
	if problem != nil {
		return nil, problem
	}
	if members[memberDataBase64] != nil && members[memberData] != nil {
		return nil, badAttribute(memberDataBase64, "The event has data twice.")
	}
	attributes := map[string]string{}
	for name, value := range members {
		switch {
		case name == memberData:
		case name == memberDataBase64 && value.Kind() == 'n': // it is no attribute, which might be null
			return nil, badAttribute(name, "The value is not base64.")
		case name != strings.ToLower(name):
			return nil, badAttribute(clip(name), "The name of an attribute has lower-case letters and digits only.")
		case value.Kind() == 'n':
		case value.Kind() == '"':
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return nil, badAttribute(clip(name), "The value is not a string.")
			}
			attributes[name] = string(text)
		case isExtension(name) && isScalar(value):
			attributes[name] = string(value)
		default:
			return nil, badAttribute(clip(name), "The value is not of a type that CloudEvents knows.")
		}
	}
	if text, ok := attributes[memberDataBase64]; ok {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return nil, badAttribute(memberDataBase64, "The value is not base64.")
		}
		delete(attributes, memberDataBase64)
	}
	return attributes, nil
}

// isScalar reports whether value is what an extension may be beside a string:
// a boolean or a whole number of 32 bits.
func isScalar(value jsontext.Value) bool {
	_, err := strconv.ParseInt(string(value), 10, 32)
	return err == nil || value.Kind() == 't' || value.Kind() == 'f'
}

func isExtension(name string) bool {
	switch name {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", memberDataBase64:
		return false
	}
	return true
}

// checkAttributes reports the first attribute that keeps an event from being
// one that execute can take.
func checkAttributes(attributes map[string]string) *execution.Problem {
	switch attributes["specversion"] {
	case cloudevent.CloudEventsVersionV1:
	case "":
		return badAttribute("specversion", "The attribute is missing.")
	default:
		return badAttribute("specversion", "Version 1.0 of CloudEvents is supported.")
	}
	for _, name := range []string{"id", "source", "type"} {
		if attributes[name] == "" {
			return badAttribute(name, "The attribute is missing.")
		}
	}
	if types.ParseURIRef(attributes["source"]) == nil {
		return badAttribute("source", "The value is not a URI reference.")
	}
	if text, ok := attributes["time"]; ok {
		if _, err := types.ParseTime(text); err != nil {
			return badAttribute("time", "The value is not a time as RFC 3339 writes it.")
		}
	}
	if text, ok := attributes["datacontenttype"]; ok && !carriesRequest(text) {
		return badAttribute("datacontenttype", "The data must be JSON in UTF-8.")
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if !cloudevent.IsExtensionNameValid(name) || name == memberData {
			return badAttribute(clip(name), "The name of an attribute has lower-case letters and digits only, and is not data.")
		}
		if strings.ContainsFunc(attributes[name], isForbidden) {
			return badAttribute(clip(name), "The value has a character that CloudEvents forbids.")
		}
	}
	return nil
}

// isForbidden reports whether no attribute may have a character: controls and
// what Unicode says is none.
func isForbidden(r rune) bool {
	return unicode.IsControl(r) || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
}

// carriesRequest reports whether data of a media type may hold a request: JSON
// also goes by as plain text. It is in UTF-8, of which ASCII is a part.
func carriesRequest(value string) bool {
	media, params, err := mime.ParseMediaType(value)
	if err != nil {
		return false
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return false
	}
	return media == execution.MediaJSON || media == "text/json" || media == "text/plain" || strings.HasSuffix(media, "+json")
}

// clip shortens a name that a problem quotes.
func clip(name string) string { return strings.ToValidUTF8(name[:min(len(name), 64)], "") }
