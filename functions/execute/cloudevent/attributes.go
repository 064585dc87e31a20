package cloudevent

import (
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"time"
	"unicode"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// received is an event as it came. The values of attributes are in their string
// encoding.
type received struct {
	attributes map[string]string
	// typed are the extensions that are not strings.
	typed map[string]any
	data  []byte
}

// readEvent reads the event that c carries. The SDK's reader would not name the
// attribute that is wrong, and refuses some of what is right.
func readEvent(c *fiber.Ctx, body []byte, structured bool) (*ce.Event, *execution.Problem) {
	read := readBinary
	if structured {
		read = func(_ *fiber.Ctx, body []byte) (*received, *execution.Problem) { return readStructured(body) }
	}
	r, problem := read(c, body)
	if problem != nil {
		return nil, problem
	}
	if problem := checkAttributes(r.attributes); problem != nil {
		return nil, problem
	}
	e := r.event()
	var invalid ce.ValidationError
	switch err := e.Validate(); {
	case errors.As(err, &invalid):
		return nil, badAttribute(slices.Min(slices.Collect(maps.Keys(invalid))), "It is not as CloudEvents wants it.")
	case err != nil:
		return nil, execution.NewProblem(execution.ProblemMalformed, "The event is malformed: %.200s.", err)
	case len(e.Data()) == 0:
		return nil, badAttribute(memberData, "The event has no data.")
	}
	return e, nil
}

// event makes an event of what checkAttributes has found good. What the SDK
// does not take it reports when it validates the event.
func (r *received) event() *ce.Event {
	e := ce.New()
	for name, value := range r.attributes {
		switch name {
		case "specversion":
		case "id":
			e.SetID(value)
		case "source":
			e.SetSource(value)
		case "type":
			e.SetType(value)
		case "subject":
			e.SetSubject(value)
		case "dataschema":
			e.SetDataSchema(value)
		case "datacontenttype":
			e.SetDataContentType(value)
		case "time":
			at, _ := parseTime(value)
			e.SetTime(at)
		default:
			e.SetExtension(name, value)
		}
	}
	for name, value := range r.typed {
		e.SetExtension(name, value)
	}
	e.DataEncoded = r.data
	return &e
}

// parseTime reads a time as RFC 3339 has it, whose letters may be small.
func parseTime(text string) (time.Time, error) { return types.ParseTime(strings.ToUpper(text)) }

func badAttribute(name, detail string) *execution.Problem {
	p := execution.NewProblem(execution.ProblemMalformed, "%s", detail)
	p.Field = name
	return p
}

// Bounds on attributes, in bytes. They come back in the answer, as headers in
// binary mode, where servers and proxies bound them, too.
const (
	maxAttribute  = 4 << 10
	maxAttributes = 32 << 10
)

// checkAttributes reports the first attribute that keeps an event from being
// one that execute can take.
func checkAttributes(attributes map[string]string) *execution.Problem {
	switch attributes["specversion"] {
	case ce.CloudEventsVersionV1:
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
		if _, err := parseTime(text); err != nil {
			return badAttribute("time", "The value is not a time as RFC 3339 writes it.")
		}
	}
	if text, ok := attributes["datacontenttype"]; ok && !carriesRequest(text) {
		return badAttribute("datacontenttype", "The data must be JSON in UTF-8.")
	}
	sum := 0
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if sum += len(name) + len(attributes[name]); len(attributes[name]) > maxAttribute || sum > maxAttributes {
			return badAttribute(clip(name), fmt.Sprintf(
				"An attribute may have %d bytes, and all of them together, with their names, %d.", maxAttribute, maxAttributes))
		}
		if !ce.IsExtensionNameValid(name) || name == memberData {
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
