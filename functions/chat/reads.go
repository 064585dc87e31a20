package chat

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/frames"
	"github.com/preheat-dev/preheat/internal/server"
)

const (
	readTimeout = 10 * time.Second
	readLimit   = 4 << 20
)

// forwardRead passes a read-only resource of execute on, as JSON or, when
// asked, as a stream of events.
func (c *Chat) forwardRead(f *fiber.Ctx) error {
	w := newWatchdog(server.Context(f))
	w.expect(readTimeout)
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, strings.TrimSuffix(c.config.ExecuteURL, "/")+f.Path(), nil)
	if err != nil {
		w.stop()
		return err
	}
	c.mark(f, req)
	stream := server.WantsEvents(f)
	if stream {
		req.Header.Set(fiber.HeaderAccept, execution.MediaSSE)
	}
	res, err := c.execute.Do(req)
	if err != nil {
		defer w.stop()
		return c.notExecuted(f, w.explain(err))
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	if stream && res.StatusCode == http.StatusOK && media == execution.MediaSSE {
		return relayRead(f, w, res)
	}
	defer w.stop()
	defer res.Body.Close()
	body, err := readAll(w.reader(res.Body, readTimeout), readLimit)
	switch {
	case err != nil:
		return c.notExecuted(f, err)
	case res.StatusCode >= http.StatusBadRequest:
		return refused(f, res, media, body)
	case res.StatusCode != http.StatusOK || media != execution.MediaJSON:
		return unexpected("it is not JSON")
	}
	f.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	f.Set(fiber.HeaderCacheControl, "no-store")
	return f.Send(body)
}

// relayRead passes a stream without an end on until either side ends it.
func relayRead(f *fiber.Ctx, w *watchdog, res *http.Response) error {
	return server.Stream(f, func(ctx context.Context, events *server.SSE) error {
		var over sync.WaitGroup
		over.Go(func() {
			select {
			case <-server.Draining(ctx):
				w.cancel(errOver)
			case <-w.ctx.Done():
			}
		})
		defer over.Wait()
		defer w.stop()
		defer res.Body.Close()
		r := frames.NewReader(w.reader(res.Body, silence), readLimit)
		for {
			frame, err := r.Next()
			if errors.Is(err, io.EOF) || errors.Is(err, errOver) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := events.Frame(frame); err != nil {
				return err
			}
		}
	})
}

var errOver = errors.New("the server is draining")
