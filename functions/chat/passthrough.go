package chat

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/relay"
	"github.com/preheat-dev/preheat/internal/server"
)

// ownPaths are the parts after /v1/ of paths that are Preheat's own, also where
// this process does not serve them: a model server never learns of them.
var ownPaths = []string{"sandbox", "sessions", "languages", "limits", "pools", "services", "functions"}

// inferencePaths are the parts after /v1/ of paths that ask a model for something.
// All others are about the account whose key is used.
var inferencePaths = []string{
	"audio", "completions", "detokenize", "embeddings", "images", "messages", "moderations", "rerank", "responses", "score", "tokenize",
}

// passedMedia are the media types of a model server's answers that are no
// documents that a browser would show as this server's own.
var passedMedia = []string{
	execution.MediaJSON, "application/jsonl", "application/octet-stream", "application/problem+json", "text/plain", "image/jpeg", "image/png", "image/webp",
}

// passThrough gives a request below /v1 that no route takes to the model server.
// It stands behind all routes, which keep their answers to other methods.
func (c *Chat) passThrough(f *fiber.Ctx) error {
	err := f.Next()
	var none *fiber.Error
	if !errors.As(err, &none) || none.Code != http.StatusNotFound {
		return err
	}
	t := c.target.Load()
	first, _, _ := strings.Cut(strings.TrimPrefix(f.Path(), "/v1/"), "/")
	switch first = strings.ToLower(first); {
	case t == nil, first == "", !relay.IsAPI(f.Path()), slices.Contains(ownPaths, first),
		!slices.Contains([]string{fiber.MethodGet, fiber.MethodPost, fiber.MethodDelete}, f.Method()):
		return err
	case c.config.LLM.URL != "" && c.config.LLM.APIKey != "" && !slices.Contains(inferencePaths, first):
		return execution.NewProblem(execution.ProblemForbidden, "This path is about the account of the model server's key, which is only used to ask models.")
	}
	if e := c.instance.Loop(f); e != nil {
		return e.Send(f)
	}
	body, err := server.Body(f)
	if err != nil {
		return err
	}
	return c.pass(f, t, modelRequest{method: f.Method(), path: strings.TrimPrefix(f.Path(), "/v1/"), query: string(f.Context().URI().QueryString()), body: body})
}

// pass sends r to t and answers f with what comes back, as it comes.
func (c *Chat) pass(f *fiber.Ctx, t *target, r modelRequest) error {
	x, err := c.begin(f, t, r)
	if x == nil {
		return err
	}
	x.seen.FirstByte()
	relay.CopyModelHeaders(f, x.Header)
	if x.streams() {
		return relay.Frames(f, x.watchdog, x.Response, c.config.LLM.IdleTimeout, x.seen)
	}
	defer x.end()
	if !slices.Contains(passedMedia, x.media) && !strings.HasPrefix(x.media, "audio/") && x.StatusCode != http.StatusNoContent {
		body, err := x.read(c.config.LLM.IdleTimeout)
		if err != nil {
			return c.unanswered(f, x.seen, err)
		}
		return errNotOpenAI(x.StatusCode, body).Send(f)
	}
	f.Status(x.StatusCode)
	if err := relay.Body(f, x.watchdog, x.Response, x.Header.Get(fiber.HeaderContentType), c.config.LLM.IdleTimeout); err != nil {
		return c.unanswered(f, x.seen, err)
	}
	x.seen.End(relay.OutcomeOf(x.StatusCode))
	return nil
}
