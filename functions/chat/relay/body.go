package relay

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// Body sends a body on while it comes, whose pieces must come within idle.
// Whoever made it has bounded it; the largest legal result is far more than
// should be in memory here.
func Body(f *fiber.Ctx, w *Watchdog, res *http.Response, media string, idle time.Duration) error {
	return server.Encode(f, media, func(to io.Writer) error {
		if _, err := io.Copy(to, w.reader(res.Body, idle)); err != nil {
			return w.Explain(err)
		}
		return nil
	})
}

// Refusal passes an error of execute on, or makes one of what stands between.
func Refusal(f *fiber.Ctx, res *http.Response, media string, body []byte) error {
	retry := res.Header.Get(fiber.HeaderRetryAfter)
	if media == execution.MediaProblem && json.Valid(body) {
		if retry != "" {
			f.Set(fiber.HeaderRetryAfter, retry)
		}
		f.Set(fiber.HeaderCacheControl, "no-store")
		f.Status(res.StatusCode).Set(fiber.HeaderContentType, execution.MediaProblem)
		return f.Send(body)
	}
	kind := execution.ProblemUpstream
	switch res.StatusCode {
	case http.StatusTooManyRequests:
		kind = execution.ProblemNoSandbox
	case http.StatusServiceUnavailable:
		kind = execution.ProblemNotReady
	case http.StatusGatewayTimeout:
		kind = execution.ProblemDeadline
	}
	if retry != "" {
		f.Set(fiber.HeaderRetryAfter, retry)
	}
	return execution.NewProblem(kind, "The execute function answered with status %d.", res.StatusCode)
}
