package sizing

import (
	"slices"
	"time"
)

// Window is the empirical quantile of how many claims came within one refill, of
// the last windows of that length. What one window leaves unmade at the refill's
// throughput counts in the next.
type Window struct {
	share   float64
	refill  Refill
	windows windows
	next    time.Duration
	size    int
}

// windowsKept is how many windows the quantile is taken of.
const windowsKept = 1800

// NewWindow returns a policy that covers a share of the windows.
func NewWindow(share float64, r Refill) *Window {
	return &Window{share: share, refill: r, windows: windows{length: r.slow(), keep: windowsKept}}
}

// Arrived implements Policy.
func (w *Window) Arrived(now time.Duration) { w.windows.arrived(now) }

// Size implements Policy.
func (w *Window) Size(now time.Duration) int {
	w.windows.advance(now)
	if now < w.next {
		return max(w.size, w.windows.open)
	}
	w.next = now + max(tick, w.refill.slow())
	if len(w.windows.counts) == 0 {
		return w.windows.open
	}
	made := w.refill.perSecond() * w.refill.slow().Seconds()
	needs := make([]float64, len(w.windows.counts))
	var left float64
	for i, c := range w.windows.counts {
		left = max(0, left-made) + float64(c)
		needs[i] = left
	}
	slices.Sort(needs)
	w.size = int(quantile(needs, w.share))
	return max(w.size, w.windows.open)
}
