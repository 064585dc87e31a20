package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/pause"
)

const (
	// limitsTries is how often execute is asked for its limits before it
	// counts as gone, limitsTimeout bounds one try.
	limitsTries   = 3
	limitsTimeout = 10 * time.Second
	// limitsBytes bounds the answer.
	limitsBytes = 1 << 20
)

// Deadline ends executions that are later than execute's own limits explain: no
// program that execute accepts is ended by it.
type Deadline struct {
	// Client sends requests to URL, which has the limits at /v1/limits.
	Client *http.Client
	URL    string
	// Timeout is for all but the waiting and running that the limits allow.
	Timeout time.Duration
	Log     *slog.Logger
}

// Await returns what do returns, which sends a request to execute. It ends w
// when the answer is too late.
func (d *Deadline) Await(w *Watchdog, do func() (*http.Response, error)) (*http.Response, error) {
	ctx, answered := context.WithCancel(w.ctx)
	var timer sync.WaitGroup
	timer.Go(func() {
		if d.overdue(ctx) {
			w.cancel(ErrTimeout)
		}
	})
	defer timer.Wait()
	defer answered()
	return do()
}

// overdue waits for Timeout and for the time that execute's limits allow
// an execution. It is false when ctx ends before. The limits are read when they
// matter, which is seldom: they are then those of now, and an execute that is
// scaled to zero stays there.
func (d *Deadline) overdue(ctx context.Context) bool {
	if !pause.For(ctx, d.Timeout) {
		return false
	}
	limits, err := backoff.Retry(ctx, func() (*execution.ServerLimits, error) { return d.limits(ctx) },
		backoff.WithMaxTries(limitsTries))
	if err != nil {
		if ctx.Err() != nil {
			return false
		}
		d.Log.Warn("the limits of the execute function are not known", "error", Redact(err))
		return true
	}
	return pause.For(ctx, limits.Longest())
}

// limits reads what execute allows.
func (d *Deadline) limits(ctx context.Context) (*execution.ServerLimits, error) {
	ctx, cancel := context.WithTimeout(ctx, limitsTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(d.URL, "/")+"/v1/limits", nil)
	if err != nil {
		return nil, err
	}
	res, err := d.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the limits: status %d", res.StatusCode)
	}
	var limits execution.ServerLimits
	if err := json.NewDecoder(io.LimitReader(res.Body, limitsBytes)).Decode(&limits); err != nil {
		return nil, fmt.Errorf("read the limits: %w", err)
	}
	return &limits, nil
}
