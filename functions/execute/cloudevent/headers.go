package cloudevent

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent/ceheader"
)

// isEvent reports whether c has an attribute of an event among its headers.
func isEvent(c *fiber.Ctx) bool {
	found := false
	c.Request().Header.VisitAll(func(name, _ []byte) { found = found || ceheader.Attribute(string(name)) != "" })
	return found
}

// readBinary reads an event in binary mode. Its attributes are not c's own,
// whose memory is used again; its data is the body.
func readBinary(c *fiber.Ctx, body []byte) (*received, *execution.Problem) {
	r := &received{attributes: map[string]string{}, data: body}
	var problem *execution.Problem
	c.Request().Header.VisitAll(func(header, value []byte) {
		name := ceheader.Attribute(string(header))
		if name == "" || problem != nil {
			return
		}
		text, ok := ceheader.Decode(string(value))
		_, repeated := r.attributes[name]
		switch {
		case name == "datacontenttype":
			problem = badAttribute(name, "In binary mode the content type of the data is the Content-Type header.")
		case repeated:
			problem = badAttribute(clip(name), "The attribute is there twice.")
		case !ok:
			problem = badAttribute(clip(name), "The value is not UTF-8 with percent encoding.")
		}
		r.attributes[name] = text
	})
	if media := c.Get(fiber.HeaderContentType); media != "" {
		r.attributes["datacontenttype"] = strings.Clone(media)
	}
	return r, problem
}
