package kube

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// offer is a pool with its template.
type offer struct {
	pool     *v1alpha1.SandboxWarmPool
	template *v1alpha1.SandboxTemplate
}

// offers lists the pools that have a template, by name.
func (c *cache) offers() []offer {
	// The caches of started informers do not fail.
	pools, _ := c.pools.List(labels.Everything())
	var out []offer
	for _, p := range pools {
		if t, err := c.templates.Get(p.Spec.SandboxTemplateRef.Name); err == nil {
			out = append(out, offer{pool: p, template: t})
		}
	}
	slices.SortFunc(out, func(a, b offer) int { return cmp.Compare(a.pool.Name, b.pool.Name) })
	return out
}

func (c *cache) poolNames() []string {
	// The caches of started informers do not fail.
	pools, _ := c.pools.List(labels.Everything())
	names := make([]string, len(pools))
	for i, p := range pools {
		names[i] = p.Name
	}
	return names
}

// offers reports whether its sandboxes run a language of this name. An alias
// of the template is not looked at: it may stand for another pool's language.
func (o offer) offers(language string) bool {
	return slices.ContainsFunc(o.template.Spec.Languages, func(l v1alpha1.Language) bool { return l.Name == language })
}

// choose returns the pool for a claim: of those that qualify and are not refused,
// the one with the shortest queue, and of these the one with the most warm
// sandboxes.
func (c *cache) choose(want pool.Claim, refused func(poolName string) error) (offer, error) {
	named := want.Pool == ""
	var fit []offer
	for _, o := range c.offers() {
		if want.Pool != "" && o.pool.Name != want.Pool {
			continue
		}
		named = true
		if o.offers(want.Language) {
			fit = append(fit, o)
		}
	}
	switch {
	case !named:
		return offer{}, fmt.Errorf("%w: %q", pool.ErrUnknownPool, want.Pool)
	case len(fit) == 0:
		return offer{}, fmt.Errorf("%w: %q", pool.ErrUnknownLanguage, want.Language)
	}
	if admitted := slices.DeleteFunc(slices.Clone(fit), func(o offer) bool { return refused(o.pool.Name) != nil }); len(admitted) > 0 {
		fit = admitted
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.MinFunc(fit, func(a, b offer) int {
		a1, b1 := a.pool.Name, b.pool.Name
		return cmp.Or(cmp.Compare(len(c.queues[a1]), len(c.queues[b1])), cmp.Compare(c.warm.count(b1), c.warm.count(a1)))
	}), nil
}

// take picks a warm sandbox of a pool for this process to try, of the template's
// latest content if there is one, in the order of plan.Older. After it has lost
// one to another replica it picks at random for a while, so that they do not run
// after the same ones. Those that avoid, if not nil, reports come last. It
// returns nil when there is none.
func (c *cache) take(o offer, avoid func(*corev1.Pod) bool) *candidate {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := pick(c.warm.of(o.pool.Name, o.template.Status.Revision), time.Since(c.lastLost) < contended, avoid)
	if e == nil {
		return nil
	}
	e.taken = true
	c.warm.remove(e)
	taken := e.candidate
	return &taken
}

// known is a sandbox with when it was first seen, which is now at the latest.
func (c *cache) known(pod *corev1.Pod) *candidate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.pods[pod.Name]; e != nil && e.pod.UID == pod.UID {
		return &candidate{pod: pod, seen: e.seen}
	}
	return &candidate{pod: pod, seen: time.Now()}
}

// contended is how long others are taken to be after the same sandboxes.
const contended = time.Second

// lost notes that another replica was faster.
func (c *cache) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastLost = time.Now()
}

// release makes sandboxes candidates again that were not claimed after all.
func (c *cache) release(taken ...*candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range taken {
		if e := c.pods[t.pod.Name]; e != nil && e.pod.UID == t.pod.UID {
			e.taken = false
			c.offer(e)
		}
	}
}

// target is any warm sandbox of a pool that is not being claimed, or nil. known
// is false when there is no such pool.
func (c *cache) target(poolName string) (pod *corev1.Pod, known bool) {
	if _, err := c.pools.Get(poolName); err != nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.warm.anyOf(poolName); e != nil {
		return e.pod, true
	}
	return nil, true
}

// hold follows the Pod of a sandbox in use, until unhold.
func (c *cache) hold(s *sandbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[s.name] = s
	// It was a candidate, or bound, so it has been here.
	switch e := c.pods[s.name]; {
	case e == nil:
		s.end(nil)
	case dead(e.pod):
		s.end(e.pod)
	}
}

func (c *cache) unhold(s *sandbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[s.name] == s {
		delete(c.held, s.name)
	}
}
