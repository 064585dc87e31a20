package chat

import (
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/relay"
	"github.com/preheat-dev/preheat/internal/server"
)

const (
	readTimeout = 10 * time.Second
	readLimit   = 4 << 20
)

// forwardRead passes a read-only resource of execute on, as JSON or, when
// asked, as a stream of events.
func (c *Chat) forwardRead(f *fiber.Ctx) error {
	w := relay.NewWatchdog(server.Context(f))
	w.Expect(readTimeout)
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, strings.TrimSuffix(c.config.ExecuteURL, "/")+f.Path(), nil)
	if err != nil {
		w.Stop()
		return err
	}
	relay.SetTraceHeaders(f, req)
	stream := server.WantsEvents(f)
	if stream {
		req.Header.Set(fiber.HeaderAccept, execution.MediaSSE)
	}
	res, err := c.execute.Do(req)
	if err != nil {
		defer w.Stop()
		return c.notExecuted(f, w.Explain(err))
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	if stream && res.StatusCode == http.StatusOK && media == execution.MediaSSE {
		return relay.Events(f, w, res)
	}
	defer w.Stop()
	defer res.Body.Close()
	body, err := w.ReadAll(res.Body, readTimeout, readLimit)
	switch {
	case err != nil:
		return c.notExecuted(f, err)
	case res.StatusCode >= http.StatusBadRequest:
		return relay.Refusal(f, res, media, body)
	case res.StatusCode != http.StatusOK || media != execution.MediaJSON:
		return unexpected("it is not JSON")
	}
	f.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	f.Set(fiber.HeaderCacheControl, "no-store")
	return f.Send(body)
}
