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
	// patient is true of events: nobody looks at a screen for them.
	patient bool
	since   time.Time
	// admitted is closed when it may create its claim.
	admitted chan struct{}
	in       bool
	// bound yields the Pod, once.
	bound chan *corev1.Pod
	// unreachable is closed when waiting makes no sense, since no sandbox could be
	// used; nil if it does in any case.
	unreachable <-chan struct{}
	// ripe is signalled when a sandbox of the pool may be free.
	ripe chan struct{}
}

// line is who waits for a sandbox of one pool. Its head has claims, which the
// controller serves in order of their creation. All behind it wait here: claims
// beyond what the pool can have sandboxes would cost the cluster writes and
// bring nobody closer to one.
type line []*waiter

// join puts w behind those that are admitted and, of the others, behind who
// came before it; but before the patient ones, unless it is patient itself.
func (l line) join(w *waiter, width int) line {
	at := len(l)
	for i, x := range l {
		if !x.in && before(w, x) {
			at = i
			break
		}
	}
	l = slices.Insert(l, at, w)
	l.admit(width)
	return l
}

func before(a, b *waiter) bool {
	if a.patient != b.patient {
		return b.patient
	}
	return a.since.Before(b.since)
}

func (l line) leave(w *waiter, width int) line {
	l = slices.DeleteFunc(l, func(x *waiter) bool { return x == w })
	l.admit(width)
	return l
}

// admit lets the first width in line create their claims.
func (l line) admit(width int) {
	for _, w := range l[:min(width, len(l))] {
		if !w.in {
			w.in = true
			close(w.admitted)
		}
	}
}

// width is how many claims of one process wait for sandboxes of a pool at once:
// as many as it can have warm.
func width(p *v1alpha1.SandboxWarmPool) int {
	if p == nil {
		return 1
	}
	return max(p.Spec.Largest(), 1)
}

func (c *cache) join(poolName string, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[poolName] = c.lines[poolName].join(w, c.width(poolName))
	c.announceLocked()
}

func (c *cache) leave(poolName string, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[poolName] = c.lines[poolName].leave(w, c.width(poolName))
	if len(c.lines[poolName]) == 0 {
		delete(c.lines, poolName)
	}
	c.announceLocked()
}

// resized lets in who waits for a pool that has grown.
func (c *cache) resized() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for poolName, l := range c.lines {
		l.admit(c.width(poolName))
	}
	c.announceLocked()
}

func (c *cache) width(poolName string) int {
	// The caches of started informers fail only for what is not there.
	p, _ := c.pools.Get(poolName)
	return width(p)
}

// waiting returns how many are in a pool's line, and whether w, if not nil, is
// the first.
func (c *cache) waiting(poolName string, w *waiter) (n int, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[poolName]
	return len(l), len(l) > 0 && l[0] == w
}
