package warmpool

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/plan"
)

const (
	// unseenFor is how long a created sandbox is expected to appear in the
	// cache, doubtFor how long one that may have been created.
	unseenFor = time.Minute
	doubtFor  = 15 * time.Second
)

// memory is what the controller knows of a pool beyond its caches, which may
// be behind its own writes. All of it can be lost at any time.
type memory struct {
	backoff plan.Backoff
	size    plan.Memory
	meter   plan.Meter
	// made holds created sandboxes, by name, until they are in the cache, with
	// the time at which they are no longer expected.
	made map[string]time.Time
	// born holds the refills that go on, by the sandbox's name.
	born map[string]refill
	// moved holds the phases of sandboxes that this controller has won.
	moved map[string]plan.Phase
	// deleted holds the sandboxes whose deletion was asked for.
	deleted map[string]bool
	// warm holds the sandboxes that have been seen warm.
	warm map[string]bool
	// claimed holds when a claimed sandbox was first seen to be so.
	claimed map[string]time.Time
	// over holds when a claimed sandbox's claim was first seen to have ended.
	over map[string]time.Time
	// bound holds the sandboxes of claims, by the claim's UID.
	bound map[types.UID]string
	// orphans holds when a claimed sandbox was first seen without its claim.
	orphans map[string]time.Time
	// order numbers the claims as they came.
	order map[types.UID]int
	last  int
	// traces are those of the claims that make the next refills necessary,
	// linked holds the sandboxes whose claims have been among them.
	traces []string
	linked map[string]bool
	// problem and desired are what was last told, in events.
	problem plan.Problem
	desired int
	// wroteStatus is when the pool's status was last changed.
	wroteStatus time.Time
}

func newMemory() *memory {
	return &memory{
		made: map[string]time.Time{}, born: map[string]refill{}, moved: map[string]plan.Phase{},
		deleted: map[string]bool{}, warm: map[string]bool{}, claimed: map[string]time.Time{}, over: map[string]time.Time{}, bound: map[types.UID]string{},
		orphans: map[string]time.Time{}, linked: map[string]bool{}, order: map[types.UID]int{},
	}
}

// memories holds the memory of each pool. A pool's memory is used by one
// reconciliation at a time, which the work queue sees to.
type memories struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]*memory
}

func (ms *memories) of(pool types.NamespacedName) *memory {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.pools == nil {
		ms.pools = map[types.NamespacedName]*memory{}
	}
	m := ms.pools[pool]
	if m == nil {
		m = newMemory()
		ms.pools[pool] = m
	}
	return m
}

func (ms *memories) drop(pool types.NamespacedName) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.pools, pool)
}

func (ms *memories) dropAll() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.pools = nil
}

// resume takes up the size that the last leader gave an autoscaled pool: from
// there it falls slowly, however little this controller has measured yet.
func (m *memory) resume(pool *v1alpha1.SandboxWarmPool, now time.Time) {
	if pool.Spec.Autoscaling != nil && m.size.Since.IsZero() {
		m.size = plan.Memory{Desired: int(pool.Status.DesiredReplicas), Since: now}
	}
}

// refresh brings the memory in line with the cache and with what has passed.
func (m *memory) refresh(pods []*corev1.Pod, claims []*v1alpha1.SandboxClaim, p passed, now time.Time) {
	for range p.claims {
		m.meter.Claimed(now)
	}
	present := map[string]bool{}
	for _, pod := range pods {
		present[pod.Name] = true
		delete(m.made, pod.Name)
		claimed := pod.Labels[v1alpha1.LabelState] == v1alpha1.StateClaimed
		if _, known := m.claimed[pod.Name]; !known && claimed {
			m.claimed[pod.Name] = now
		}
		if !claimed || pod.DeletionTimestamp != nil {
			delete(m.orphans, pod.Name) // whatever became of its claim
		}
		if parent := pod.Labels[v1alpha1.LabelTrace]; parent != "" && !m.linked[pod.Name] {
			m.linked[pod.Name] = true
			m.traces = append(m.traces, parent)
		}
	}
	m.traces = m.traces[max(0, len(m.traces)-maxLinks):]
	for _, name := range p.gone {
		delete(m.made, name)
	}
	for name, until := range m.made {
		if !now.Before(until) {
			delete(m.made, name)
		}
	}
	keep := func(name string) bool {
		_, made := m.made[name]
		return made || present[name]
	}
	prune(m.born, keep)
	prune(m.moved, keep)
	prune(m.deleted, keep)
	prune(m.warm, keep)
	prune(m.claimed, keep)
	prune(m.over, keep)
	prune(m.orphans, keep)
	prune(m.linked, keep)
	m.number(claims, p.first)
}

// wake is when the memory itself brings news; zero means never.
func (m *memory) wake() (first time.Time) {
	earlier := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, until := range m.made {
		earlier(until)
	}
	for _, seen := range m.orphans {
		earlier(seen.Add(orphanGrace))
	}
	return first
}

// number gives new claims the numbers in whose order they are served: the
// creation time alone has the resolution of a second. first holds the versions
// that claims had when they came. A claim without one has to wait for the next
// look, which its coming brings about.
func (m *memory) number(claims []*v1alpha1.SandboxClaim, first map[types.UID]string) {
	present := map[types.UID]bool{}
	var fresh []*v1alpha1.SandboxClaim
	for _, c := range claims {
		present[c.UID] = true
		_, known := m.order[c.UID]
		if _, came := first[c.UID]; came && !known {
			fresh = append(fresh, c)
		}
	}
	prune(m.order, func(uid types.UID) bool { return present[uid] })
	prune(m.bound, func(uid types.UID) bool { return present[uid] })
	slices.SortFunc(fresh, func(a, b *v1alpha1.SandboxClaim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(version(first[a.UID]), version(first[b.UID])))
	})
	for _, c := range fresh {
		m.last++
		m.order[c.UID] = m.last
	}
}

func version(text string) uint64 {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0 // not a number: the order within a second is then open
	}
	return v
}

func prune[K comparable, V any](m map[K]V, keep func(K) bool) {
	for k := range m {
		if !keep(k) {
			delete(m, k)
		}
	}
}
