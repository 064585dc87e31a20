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
	ended   map[claimKey]time.Time
	pruned  time.Time
	pending map[types.NamespacedName]*passed
	// first holds the versions that the claims had when they came.
	first map[types.UID]string
}

// claimKey identifies a claim that ended. The claim of an event gets the name of
// an earlier one, so that the name alone does not say which of them a sandbox
// belongs to. Claims whose sandboxes do not bear a UID have names of their own.
type claimKey struct {
	name types.NamespacedName
	uid  types.UID
}

// passed is what happened to a pool's sandboxes since the last look.
type passed struct {
	claims int
	gone   []string
	// first holds the versions that the pool's claims had when they came.
	first map[types.UID]string
}

func newLedger() *ledger {
	return &ledger{ended: map[claimKey]time.Time{}, pending: map[types.NamespacedName]*passed{}, first: map[types.UID]string{}}
}

// claimSeen notes the version of a new claim. Later versions, such as that of
// the claim's first status, say nothing about when it was created.
func (l *ledger) claimSeen(c *v1alpha1.SandboxClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ended, claimKey{name: nameOf(c)}) // it has begun again
	if _, known := l.first[c.UID]; !known {
		l.first[c.UID] = c.ResourceVersion
	}
}

// claimEnded notes that a claim existed and does not any more.
func (l *ledger) claimEnded(c *v1alpha1.SandboxClaim, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.pruned) > endedFor {
		l.pruned = now
		prune(l.ended, func(key claimKey) bool { return now.Sub(l.ended[key]) < endedFor })
	}
	l.ended[claimKey{nameOf(c), c.UID}], l.ended[claimKey{name: nameOf(c)}] = now, now
	delete(l.first, c.UID)
}

// foundEnded notes that the API server has no such claim any more: its sandbox
// may be destroyed later than this is found.
func (l *ledger) foundEnded(name types.NamespacedName, uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[claimKey{name, uid}] = now
}

// hasEnded reports whether the claim with this name and UID has ended; without
// a UID, whether the last claim of this name has.
func (l *ledger) hasEnded(name types.NamespacedName, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.ended[claimKey{name, uid}]
	return ok
}

func nameOf(c *v1alpha1.SandboxClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
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

// versions returns the versions that claims had when they came, of those
// whose coming has been noted: a cache is ahead of its watchers.
func (l *ledger) versions(claims []*v1alpha1.SandboxClaim) map[types.UID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := make(map[types.UID]string, len(claims))
	for _, c := range claims {
		if v, ok := l.first[c.UID]; ok {
			first[c.UID] = v
		}
	}
	return first
}

func poolOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelPool]}
}
