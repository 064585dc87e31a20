package server

import (
	"mime"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

// RequireJSON returns a problem (415) unless c's body is declared as JSON, be
// it application/json or a type ending in +json, in UTF-8 and without content
// coding. Forms of other origins cannot declare such a type.
func RequireJSON(c *fiber.Ctx) error {
	if coding := c.Get(fiber.HeaderContentEncoding); coding != "" && !strings.EqualFold(coding, "identity") {
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "The content coding %q is not supported: send the body as it is.", coding)
	}
	value := c.Get(fiber.HeaderContentType)
	media, params, err := mime.ParseMediaType(value)
	if err != nil || (media != execution.MediaJSON && !isJSONSuffix(media)) {
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "The content type must be application/json, not %q.", value)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "JSON must be in UTF-8, not in %q.", charset)
	}
	return nil
}

func isJSONSuffix(media string) bool {
	return strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

// WantsEvents reports whether c's client names the event stream among what it
// accepts, and does not prefer JSON to it by a quality value (RFC 9110, 12.5.1).
func WantsEvents(c *fiber.Ctx) bool {
	var events, json float64
	for part := range strings.SplitSeq(c.Get(fiber.HeaderAccept), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		switch media {
		case execution.MediaSSE:
			events = max(events, q)
		case execution.MediaJSON:
			json = max(json, q)
		}
	}
	return events > 0 && events >= json
}

// WantsArchive reports whether c's client wants files as a tar archive.
func WantsArchive(c *fiber.Ctx) bool {
	return c.Context().QueryArgs().Has("archive") || strings.Contains(c.Get(fiber.HeaderAccept), execution.MediaTar)
}
