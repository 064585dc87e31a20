package sizing

import "time"

// watermarkHold is how long after its last doubling a Watermark first shrinks.
const watermarkHold = 30 * time.Second

// Watermark doubles a pool when fewer than a fourth of its sandboxes are warm,
// as far as its own count of recent arrivals shows, and halves it after a quiet
// time.
type Watermark struct {
	Low, High int
	refill    Refill
	size      int
	recent    []time.Duration
	since     time.Duration
}

// NewWatermark returns a policy that stays within low and high.
func NewWatermark(low, high int, r Refill) *Watermark {
	return &Watermark{Low: low, High: high, refill: r, size: low}
}

// Arrived implements Policy.
func (w *Watermark) Arrived(now time.Duration) {
	w.recent = append(w.recent, now)
	w.forget(now)
	if len(w.recent)*4 > w.size*3 && w.size < w.High {
		w.size = min(max(1, 2*w.size), w.High)
		w.since = now
	}
}

// Size implements Policy.
func (w *Watermark) Size(now time.Duration) int {
	w.forget(now)
	if now-w.since >= watermarkHold && len(w.recent)*4 < w.size && w.size > w.Low {
		w.size = max(w.size/2, w.Low)
		w.since = now
	}
	return w.size
}

// forget drops the arrivals that have been replaced by now.
func (w *Watermark) forget(now time.Duration) {
	for len(w.recent) > 0 && w.recent[0] <= now-w.refill.slow() {
		w.recent = w.recent[1:]
	}
}
