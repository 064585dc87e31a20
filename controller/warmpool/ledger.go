package warmpool

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

const (
	// endedFor is how long the end of a claim is remembered: longer than it
	// takes to delete its sandbox. After that it is an orphan like others.
	endedFor = time.Minute
	// maxGone bounds the names kept of a pool that nobody looks at, as in a
	// controller that does not lead.
	maxGone = 1000
)

// ledger keeps what passes by in the watches and can no longer be read from
// the caches: claims that ended, sandboxes that were claimed or went away.
type ledger struct {
	mu      sync.Mutex
	ended   map[types.NamespacedName]time.Time
	pruned  time.Time
	pending map[types.NamespacedName]*passed
}

// passed is what happened to a pool's sandboxes since the last look.
type passed struct {
	claims int
	gone   []string
}

func newLedger() *ledger {
	return &ledger{ended: map[types.NamespacedName]time.Time{}, pending: map[types.NamespacedName]*passed{}}
}

// claimEnded notes that a claim existed and does not any more.
func (l *ledger) claimEnded(c *v1alpha1.SandboxClaim, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.pruned) > endedFor {
		l.pruned = now
		prune(l.ended, func(key types.NamespacedName) bool { return now.Sub(l.ended[key]) < endedFor })
	}
	l.ended[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = now
}

func (l *ledger) hasEnded(namespace, claim string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.ended[types.NamespacedName{Namespace: namespace, Name: claim}]
	return ok
}

func (l *ledger) sandboxClaimed(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(pod).claims++
}

func (l *ledger) sandboxGone(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of(pod)
	if len(p.gone) == maxGone {
		p.gone = p.gone[:0]
	}
	p.gone = append(p.gone, pod.Name)
}

func (l *ledger) of(pod *corev1.Pod) *passed {
	key := poolOf(pod)
	p := l.pending[key]
	if p == nil {
		p = &passed{}
		l.pending[key] = p
	}
	return p
}

// take returns what has passed for a pool, and forgets it.
func (l *ledger) take(pool types.NamespacedName) passed {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pending[pool]
	delete(l.pending, pool)
	if p == nil {
		return passed{}
	}
	return *p
}

func poolOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelPool]}
}
