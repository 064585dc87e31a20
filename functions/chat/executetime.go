package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/cenkalti/backoff/v5"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/pause"
)

// limitsTries is how often execute is asked for its limits before it counts as
// gone.
const limitsTries = 3

// awaitExecution returns what do returns, which sends a request to execute. It
// ends w when the answer is later than execute's own limits explain: no program
// that execute accepts is ended by chat.
func (c *Chat) awaitExecution(w *watchdog, do func() (*http.Response, error)) (*http.Response, error) {
	ctx, answered := context.WithCancel(w.ctx)
	var timer sync.WaitGroup
	timer.Go(func() {
		if c.overdue(ctx) {
			w.cancel(errTimeout)
		}
	})
	defer timer.Wait()
	defer answered()
	return do()
}

// overdue waits for ExecuteTimeout and for the time that execute's limits allow
// an execution. It is false when ctx ends before. The limits are read when they
// matter, which is seldom: they are then those of now, and an execute that is
// scaled to zero stays there.
func (c *Chat) overdue(ctx context.Context) bool {
	if !pause.For(ctx, c.config.ExecuteTimeout) {
		return false
	}
	limits, err := backoff.Retry(ctx, func() (*execution.ServerLimits, error) { return c.executeLimits(ctx) },
		backoff.WithMaxTries(limitsTries))
	if err != nil {
		if ctx.Err() != nil {
			return false
		}
		c.log.Warn("the limits of the execute function are not known", "error", redact(err))
		return true
	}
	return pause.For(ctx, limits.Longest())
}

// executeLimits reads what execute allows.
func (c *Chat) executeLimits(ctx context.Context) (*execution.ServerLimits, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	base := strings.TrimSuffix(cmp.Or(c.config.ChatURL, c.config.ExecuteURL), "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/limits", nil)
	if err != nil {
		return nil, err
	}
	res, err := c.execute.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the limits: status %d", res.StatusCode)
	}
	var limits execution.ServerLimits
	if err := json.NewDecoder(io.LimitReader(res.Body, readLimit)).Decode(&limits); err != nil {
		return nil, fmt.Errorf("read the limits: %w", err)
	}
	return &limits, nil
}
