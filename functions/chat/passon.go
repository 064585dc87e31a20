package chat

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// sourceChat marks requests that another chat answers, in the metrics.
const sourceChat = "chat"

// passOn gives a request to the chat at ChatURL as it came, and its answer
// back. Streams go through the same relays as those of execute and of models,
// so that one that broke off on the way is told as such.
func (c *Chat) passOn(f *fiber.Ctx) error {
	if e := c.loop(f); e != nil {
		return e.send(f)
	}
	if !isAPI(f.Path()) {
		return execution.NewProblem(execution.ProblemNotFound, "There is nothing at this path.")
	}
	talk := strings.HasPrefix(f.Path(), "/v1/chat/completions")
	request, err := server.Body(f)
	if err != nil {
		return err
	}
	w := newWatchdog(server.Context(f))
	ask := func() (*http.Response, error) { return c.askChat(w.ctx, f, request) }
	var res *http.Response
	if talk {
		w.expect(c.config.LLM.FirstByteTimeout)
		res, err = ask()
	} else {
		res, err = c.awaitExecution(w, ask)
	}
	if err != nil {
		defer w.stop()
		return c.notPassedOn(f, talk, w.explain(err))
	}
	if talk {
		copyHeaders(f, res.Header)
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	if res.StatusCode == http.StatusOK && media == execution.MediaSSE {
		switch {
		case talk:
			return c.relayStream(f, w, res, c.metrics.begin(sourceChat))
		case f.Method() == fiber.MethodPost:
			return c.relayExecution(f, w, res)
		}
		return relayRead(f, w, res)
	}
	defer w.stop()
	defer res.Body.Close()
	if res.StatusCode >= http.StatusMultipleChoices && media != execution.MediaJSON && media != execution.MediaProblem {
		// Of what stands between, such as a proxy.
		body, err := readAll(w.reader(res.Body, silence), c.config.RefusalLimit)
		if err != nil {
			return c.notPassedOn(f, talk, err)
		}
		return refused(f, res, media, body)
	}
	for _, name := range []string{fiber.HeaderCacheControl, fiber.HeaderAllow, fiber.HeaderRetryAfter} {
		if v := res.Header.Get(name); v != "" {
			f.Set(name, v)
		}
	}
	f.Status(res.StatusCode)
	if err := forwardBody(f, w, res, res.Header.Get(fiber.HeaderContentType)); err != nil {
		return c.notPassedOn(f, talk, err)
	}
	return nil
}

// isAPI reports whether whoever resolves path comes to the interface below /v1:
// it has no dot segments and no second way to write them or a slash.
func isAPI(p string) bool {
	plain, err := url.PathUnescape(p)
	return err == nil && plain == p && path.Clean(p) == strings.TrimSuffix(p, "/") && strings.HasPrefix(p, "/v1/") && !strings.Contains(p, "\\")
}

// askChat sends f's request on, and returns the response once its header is
// there.
func (c *Chat) askChat(ctx context.Context, f *fiber.Ctx, body []byte) (*http.Response, error) {
	target := strings.TrimSuffix(c.config.ChatURL, "/") + f.OriginalURL()
	req, err := http.NewRequestWithContext(ctx, f.Method(), target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{
		fiber.HeaderContentType, fiber.HeaderContentEncoding, fiber.HeaderAccept, fiber.HeaderAuthorization,
		"OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project",
	} {
		if v := f.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	via := c.instance
	if before := f.Get(headerVia); before != "" {
		via = before + ", " + via
	}
	req.Header.Set(headerVia, via)
	c.mark(f, req)
	return c.execute.Do(req)
}

// notPassedOn is the answer where the other chat gave none.
func (c *Chat) notPassedOn(f *fiber.Ctx, talk bool, err error) error {
	if errors.Is(err, server.ErrPeerGone) || errors.Is(err, server.ErrShutdown) {
		return err
	}
	server.Logger(server.Context(f)).Warn("the chat function did not answer", "error", redact(err))
	if talk {
		return upstreamError(err).send(f)
	}
	switch {
	case errors.Is(err, errTimeout):
		return execution.NewProblem(execution.ProblemDeadline, "The chat function did not answer in time.")
	case errors.Is(err, errTooLarge):
		return execution.NewProblem(execution.ProblemUpstream, "The chat function's answer is too large.")
	}
	return execution.NewProblem(execution.ProblemUpstream, "The chat function cannot be reached.")
}
