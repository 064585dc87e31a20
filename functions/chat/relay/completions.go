package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/functions/chat/relay/frames"
	"github.com/preheat-dev/preheat/internal/server"
)

// frameLimit bounds one event of another server's stream.
const frameLimit = 16 << 20

// Completions passes a stream of completion chunks on, whose pieces must come
// within idle. Each event goes out as
// soon as it is complete, as the bytes that came. A stream that does not reach
// its end gets an error event, and nothing that failed ends in [DONE].
func Completions(f *fiber.Ctx, w *Watchdog, res *http.Response, idle time.Duration, seen *Observation) error {
	return server.StreamWithPing(f, server.PingComment, func(ctx context.Context, events *server.SSE) error {
		defer w.Stop()
		defer res.Body.Close()
		err := relayCompletions(w, res.Body, idle, events, seen)
		switch {
		case err == nil:
			seen.End(OutcomeOf(res.StatusCode))
			return nil
		case errors.Is(err, errReported):
			seen.End(outcomeError)
			return nil
		case errors.Is(context.Cause(ctx), server.ErrPeerGone):
			seen.End(OutcomeCancelled)
			return context.Cause(ctx)
		}
		seen.End(outcomeCut)
		server.Logger(ctx).Warn("a model server's stream broke off", "error", Redact(err))
		return events.Frame(UpstreamError(err).Event())
	})
}

// errReported: the stream itself has reported its failure to the client.
var errReported = errors.New("the model server reported an error")

func relayCompletions(w *Watchdog, body io.Reader, idle time.Duration, events *server.SSE, seen *Observation) error {
	r := frames.NewReader(w.reader(body, idle), frameLimit)
	reported := false
	for {
		frame, err := r.Next()
		if err != nil && isDone(frame) {
			// Some servers leave the last blank line out.
			frame, err = append(bytes.TrimRight(frame, "\r\n"), "\n\n"...), nil
		}
		switch {
		case err != nil && reported:
			return errReported
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return errCut
		case err != nil:
			return err
		case isDone(frame) && reported:
			return errReported
		}
		seen.FirstByte()
		if err := events.Frame(frame); err != nil {
			return err
		}
		if isDone(frame) {
			w.drain(body)
			return nil
		}
		reported = reported || isError(frame)
	}
}

func isDone(frame []byte) bool {
	// Content that holds the mark is recognised by the field's exact value.
	return bytes.Contains(frame, []byte("[DONE]")) && string(bytes.TrimSpace(frames.Field(frame, "data"))) == "[DONE]"
}

func isError(frame []byte) bool {
	if !bytes.Contains(frame, []byte("error")) {
		return false
	}
	if string(frames.Field(frame, "event")) == "error" {
		return true
	}
	// Within a JSON string these quotes would be escaped: nearly every frame
	// is decided by this alone.
	if !bytes.Contains(frame, []byte(`"error"`)) {
		return false
	}
	var data struct {
		Error  any    `json:"error"`
		Object string `json:"object"`
	}
	return json.Unmarshal(frames.Field(frame, "data"), &data) == nil && (data.Error != nil || data.Object == "error")
}
