package sizing

import (
	"math"
	"sort"
	"time"
)

// Oracle knows the arrivals to come. It is no policy to have but the bound of
// all: it makes each sandbox as late as the refill's time and throughput allow.
type Oracle struct {
	arrivals []time.Duration
	// begin holds when each arrival's sandbox must be begun.
	begin []time.Duration
	next  int
}

// NewOracle returns a policy that allows a refill slack times its usual time.
func NewOracle(arrivals []time.Duration, r Refill, slack float64) *Oracle {
	o := &Oracle{arrivals: arrivals, begin: make([]time.Duration, len(arrivals))}
	gap := time.Duration(float64(time.Second) / r.perSecond())
	latest := time.Duration(math.MaxInt64)
	for i := len(arrivals) - 1; i >= 0; i-- {
		latest = min(latest-gap, arrivals[i]-scale(r.P50, slack))
		o.begin[i] = latest
	}
	return o
}

// Arrived implements Policy.
func (o *Oracle) Arrived(time.Duration) { o.next++ }

// Size implements Policy: how many arrivals' sandboxes should have been begun and
// have not been claimed.
func (o *Oracle) Size(now time.Duration) int {
	begun := sort.Search(len(o.begin), func(i int) bool { return o.begin[i] > now })
	return max(0, begun-o.next)
}
