package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

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
		r := frames.NewReader(w.reader(res.Body, Silence), eventLimit)
		for {
			frame, err := r.Next()
			if errors.Is(err, io.EOF) || errors.Is(err, errDraining) {
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

var errDraining = errors.New("the server is draining")
