// Package sizing answers how many sandboxes a pool should keep warm. It has
// policies, each of which looks at what has arrived and names a size, and a
// replay that says what callers would have felt and what would have stood idle
// had a pool followed one of them. All of it is pure: times are offsets that the
// caller provides, and what is random comes from a seed.
//
// Nothing of a running pool depends on this package.
package sizing

import (
	"math"
	"time"
)

// Policy names the size of a pool. Times are offsets from any fixed instant and
// never fall from one call to the next.
type Policy interface {
	// Arrived counts one claim.
	Arrived(now time.Duration)
	// Size is how many sandboxes should be warm.
	Size(now time.Duration) int
}

// Refill is how sandboxes become warm: how long one takes, and how many are made
// at once. Together they bound how fast a drained pool comes back.
type Refill struct {
	// P50 and P99 describe the time to make one, which is lognormal.
	P50, P99 time.Duration
	// Parallel is how many are made at once.
	Parallel int
}

// slow is the time within which nearly every sandbox is warm.
func (r Refill) slow() time.Duration { return (r.P50 + r.P99) / 2 }

// perSecond is how many sandboxes become warm in a second at most.
func (r Refill) perSecond() float64 { return float64(max(r.Parallel, 1)) / r.mean().Seconds() }

// mean is the mean of the distribution.
func (r Refill) mean() time.Duration {
	s := r.sigma()
	return scale(r.P50, math.Exp(s*s/2))
}
