package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/functions/chat/relay/frames"
	"github.com/preheat-dev/preheat/internal/server"
)

// eventLimit bounds one event of a stream about execute's state.
const eventLimit = 4 << 20

// Events passes a stream without an end on until either side ends it.
func Events(f *fiber.Ctx, w *Watchdog, res *http.Response) error {
	return server.Stream(f, func(ctx context.Context, events *server.SSE) error {
		var draining sync.WaitGroup
		draining.Go(func() {
			select {
			case <-server.Draining(ctx):
				w.cancel(errDraining)
			case <-w.ctx.Done():
			}
		})
		defer draining.Wait()
		defer w.Stop()
		defer res.Body.Close()
		err := passFrames(frames.NewReader(w.reader(res.Body, Silence), eventLimit), events)
		if errors.Is(err, errDraining) {
			return nil
		}
		return err
	})
}

// Frames passes a model server's stream on whose end has no mark, and whose
// pieces must come within idle. A stream that breaks off breaks off here, too.
func Frames(f *fiber.Ctx, w *Watchdog, res *http.Response, idle time.Duration, seen *Observation) error {
	return server.StreamWithPing(f, server.PingComment, func(ctx context.Context, events *server.SSE) error {
		defer w.Stop()
		defer res.Body.Close()
		err := passFrames(frames.NewReader(w.reader(res.Body, idle), frameLimit), events)
		switch {
		case err == nil:
			seen.End(OutcomeOf(res.StatusCode))
		case errors.Is(context.Cause(ctx), server.ErrPeerGone):
			seen.End(OutcomeCancelled)
		default:
			seen.End(outcomeCut)
			server.Logger(ctx).Warn("a model server's stream broke off", "error", Redact(err))
		}
		return err
	})
}

// passFrames passes events on until there are no more.
func passFrames(r *frames.Reader, to *server.SSE) error {
	for {
		frame, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := to.Frame(frame); err != nil {
			return err
		}
	}
}

var errDraining = errors.New("the server is draining")
