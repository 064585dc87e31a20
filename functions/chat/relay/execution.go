package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat/relay/frames"
	"github.com/preheat-dev/preheat/internal/server"
)

// Execution passes execute's stream on. When it breaks off, the client
// gets the terminal event all the same, with the status that is true then.
func Execution(f *fiber.Ctx, w *Watchdog, res *http.Response) error {
	return relayExecution(f, w, res, func(x execution.Exit) any { return x })
}

// sessionRun is Execution for a run in a session.
func sessionRun(f *fiber.Ctx, w *Watchdog, res *http.Response) error {
	return relayExecution(f, w, res, func(x execution.Exit) any { return execution.SessionExit{Exit: x} })
}

// relayExecution passes a stream on; exit makes the terminal event of one that broke
// off.
func relayExecution(f *fiber.Ctx, w *Watchdog, res *http.Response, exit func(execution.Exit) any) error {
	id := server.RequestID(f)
	return server.Stream(f, func(ctx context.Context, events *server.SSE) error {
		defer w.Stop()
		defer res.Body.Close()
		sandbox, err := relayUntilExit(w, res.Body, events)
		if err == nil {
			return nil
		}
		if errors.Is(context.Cause(ctx), server.ErrPeerGone) {
			return context.Cause(ctx)
		}
		server.Logger(ctx).Warn("an execution's stream broke off", "error", Redact(err), "sandbox", sandbox)
		p := ExecutionProblem(err)
		p.RequestID = id
		return events.Send(execution.EventExit, exit(execution.Exit{
			SandboxName: sandbox, Status: execution.StatusPlatformError, Notes: []string{}, Problem: p,
		}))
	})
}

// relayUntilExit passes events on, the exit event last, and returns the
// sandbox's name as soon as it is known.
func relayUntilExit(w *Watchdog, body io.Reader, events *server.SSE) (sandbox string, err error) {
	r := frames.NewReader(w.reader(body, Silence), executionFrameLimit)
	for {
		frame, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return sandbox, errCut
		}
		if err != nil {
			return sandbox, err
		}
		if err := events.Frame(frame); err != nil {
			return sandbox, err
		}
		switch string(frames.Field(frame, "event")) {
		case execution.EventStart:
			var start execution.Start
			if json.Unmarshal(frames.Field(frame, "data"), &start) == nil {
				sandbox = start.SandboxName
			}
		case execution.EventExit:
			w.drain(body)
			return sandbox, nil
		}
	}
}

// executionFrameLimit has room for the largest artifact in base64.
const executionFrameLimit = 64 << 20
