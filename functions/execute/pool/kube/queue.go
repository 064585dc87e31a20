package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// waiter is an execution that waits for a sandbox.
type waiter struct {
	// claim is the name of the SandboxClaim that it has, once it is admitted.
	claim string
	// lowPriority is true of events: they wait behind interactive requests.
	lowPriority bool
	since       time.Time
	// admitted is closed when it may create its claim.
	admitted chan struct{}
	in       bool
	// bound yields the Pod, once.
	bound chan *corev1.Pod
	// unreachable is closed when waiting makes no sense, since no sandbox could be
	// used; nil if it does in any case.
	unreachable <-chan struct{}
	// available is signalled when a sandbox of the pool may be free.
	available chan struct{}
}

// queue is the executions that wait for a sandbox of one pool. The first of them
// have claims, which the controller serves in order of creation. The others wait
// here: more claims than the pool can have sandboxes would cost the cluster
// writes, and nobody would be served sooner.
type queue []*waiter

// join puts w behind those that are admitted and, of the others, behind who
// came before it; but before those of low priority, unless it is one itself.
func (q queue) join(w *waiter, maxInFlight int) queue {
	at := len(q)
	for i, x := range q {
		if !x.in && before(w, x) {
			at = i
			break
		}
	}
	q = slices.Insert(q, at, w)
	q.admit(maxInFlight)
	return q
}

func before(a, b *waiter) bool {
	if a.lowPriority != b.lowPriority {
		return b.lowPriority
	}
	return a.since.Before(b.since)
}

func (q queue) leave(w *waiter, maxInFlight int) queue {
	q = slices.DeleteFunc(q, func(x *waiter) bool { return x == w })
	q.admit(maxInFlight)
	return q
}

// admit lets the first of the queue create their claims.
func (q queue) admit(maxInFlight int) {
	for _, w := range q[:min(maxInFlight, len(q))] {
		if !w.in {
			w.in = true
			close(w.admitted)
		}
	}
}

// maxInFlight is how many claims of one process wait for sandboxes of a pool at once:
// as many as it can have warm.
func maxInFlight(p *v1alpha1.SandboxWarmPool) int {
	if p == nil {
		return 1
	}
	return max(p.Spec.Largest(), 1)
}

func (c *cache) join(poolName string, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[poolName] = c.queues[poolName].join(w, c.maxInFlight(poolName))
	c.announceLocked()
}

func (c *cache) leave(poolName string, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[poolName] = c.queues[poolName].leave(w, c.maxInFlight(poolName))
	if len(c.queues[poolName]) == 0 {
		delete(c.queues, poolName)
	}
	c.announceLocked()
}

// resized admits executions that wait for a pool that has grown.
func (c *cache) resized() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for poolName, l := range c.queues {
		l.admit(c.maxInFlight(poolName))
	}
	c.announceLocked()
}

func (c *cache) maxInFlight(poolName string) int {
	// The caches of started informers fail only for what is not there.
	p, _ := c.pools.Get(poolName)
	return maxInFlight(p)
}

// waiting returns how many are in a pool's queue, and whether w, if not nil, is
// the first.
func (c *cache) waiting(poolName string, w *waiter) (n int, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.queues[poolName]
	return len(l), len(l) > 0 && l[0] == w
}
