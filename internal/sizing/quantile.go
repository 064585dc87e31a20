package sizing

import (
	"math"
	"time"
)

// Quantile covers a share of the claims of the recent past: the size is the
// quantile of what they needed, the throughput of refills included.
type Quantile struct {
	share   float64
	refill  Refill
	needs   needs
	weights []float64
	total   float64
	at      time.Duration
}

// NewQuantile returns a policy that covers a share of the claims.
func NewQuantile(share float64, r Refill) *Quantile {
	return &Quantile{share: share, refill: r, needs: needs{parallel: r.Parallel}}
}

// Arrived implements Policy.
func (q *Quantile) Arrived(now time.Duration) {
	need := q.needs.arrived(now, q.refill.mean(), q.refill.slow())
	f := math.Exp2(-float64(now-q.at) / float64(historyHalfLife))
	q.at = now
	for i := range q.weights {
		q.weights[i] *= f
	}
	q.total = q.total*f + 1
	for len(q.weights) <= need {
		q.weights = append(q.weights, 0)
	}
	q.weights[need]++
}

// Size implements Policy.
func (q *Quantile) Size(time.Duration) int {
	above := q.total * (1 - q.share)
	for s := len(q.weights) - 1; s > 0; s-- {
		if above -= q.weights[s]; above < 0 {
			return s
		}
	}
	return 0
}
