package execute

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

const (
	// maxRetryAfter bounds what callers are asked to wait, in seconds.
	maxRetryAfter = 60
	// paceWeight is the weight of the past in the mean, against 1 of the last
	// execution.
	paceWeight = 7
)

// pace is how long executions have their sandboxes: a moving mean for each pool.
type pace struct {
	mu   sync.Mutex
	mean map[string]time.Duration
}

func (p *pace) note(poolName string, held time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == nil {
		p.mean = map[string]time.Duration{}
	}
	if before, known := p.mean[poolName]; known {
		held = (paceWeight*before + held) / (paceWeight + 1)
	}
	p.mean[poolName] = held
}

func (p *pace) of(poolName string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean[poolName]
}

// line returns how many requests wait for a sandbox like want's, in the pool
// with the shortest line, and the seconds until one that comes now may have its.
func (e *Executor) line(want pool.Claim) (waiting, retryAfter int) {
	var best *execution.PoolStatus
	for _, s := range e.pool.Status() {
		if (want.Pool == "" || s.Name == want.Pool) && slices.Contains(s.Languages, want.Language) && (best == nil || s.Waiting < best.Waiting) {
			best = &s
		}
	}
	if best == nil {
		return 0, 1
	}
	return best.Waiting, retryAfterSeconds(best.Waiting, best.Claimed, e.pace.of(best.Name))
}

// retryAfterSeconds is when a request may have its sandbox that has waiting others
// before it, where claimed sandboxes serve one after the other for mean each.
func retryAfterSeconds(waiting, claimed int, mean time.Duration) int {
	seconds := math.Ceil(float64(waiting+1) * mean.Seconds() / float64(max(claimed, 1)))
	return int(min(max(seconds, 1), maxRetryAfter))
}
