package kube

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Languages implements pool.Pool.
func (p *Pool) Languages() []execution.Language {
	byName := map[string]*execution.Language{}
	for _, o := range p.cache.offers() {
		for _, l := range o.template.Spec.Languages {
			x := byName[l.Name]
			if x == nil {
				x = &execution.Language{Name: l.Name, Aliases: []string{}, Version: l.Version}
				byName[l.Name] = x
			}
			for _, a := range l.Aliases {
				if !slices.Contains(x.Aliases, a) {
					x.Aliases = append(x.Aliases, a)
				}
			}
			x.Warm = x.Warm || l.Warm
			x.Version = cmp.Or(x.Version, l.Version)
			x.Pools = append(x.Pools, o.pool.Name)
		}
	}
	out := make([]execution.Language, 0, len(byName))
	for _, l := range byName {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b execution.Language) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Status implements pool.Pool.
func (p *Pool) Status() []execution.PoolStatus {
	offers := p.cache.offers()
	out := make([]execution.PoolStatus, len(offers))
	at := map[string]*execution.PoolStatus{}
	for i, o := range offers {
		s := &out[i]
		s.Name, s.Languages, s.Sandboxes = o.pool.Name, []string{}, []execution.SandboxStatus{}
		for _, l := range o.template.Spec.Languages {
			s.Languages = append(s.Languages, l.Name)
		}
		s.Desired = int(o.pool.Status.DesiredReplicas)
		s.Waiting = int(o.pool.Status.WaitingClaims)
		if c := o.pool.Status.GetCondition(v1alpha1.ConditionReady); c.IsFalse() {
			s.Problem = c.Reason + ": " + c.Message
		}
		at[s.Name] = s
	}
	p.cache.addSandboxes(at)
	for i := range out {
		slices.SortFunc(out[i].Sandboxes, func(a, b execution.SandboxStatus) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

// addSandboxes fills in the sandboxes, and the callers that wait, of pools by
// their names.
func (c *cache) addSandboxes(pools map[string]*execution.PoolStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.pods {
		if s := pools[e.pod.Labels[v1alpha1.LabelPool]]; s != nil {
			add(s, e.pod)
		}
	}
	for name, s := range pools {
		// This process knows of its own queue at once.
		s.Waiting = max(s.Waiting, len(c.queues[name]))
	}
}

func add(s *execution.PoolStatus, pod *corev1.Pod) {
	state := stateOf(pod)
	switch state {
	case execution.SandboxClaimed:
		s.Claimed++
	case execution.SandboxWarm:
		s.Warm++
	case execution.SandboxWarming:
		s.Warming++
	default:
		return
	}
	s.Sandboxes = append(s.Sandboxes, execution.SandboxStatus{Name: pod.Name, State: state})
}

// stateOf is a sandbox's state as callers see it, and empty for one that ends.
func stateOf(pod *corev1.Pod) string {
	switch {
	case pod.Labels[v1alpha1.LabelState] == v1alpha1.StateClaimed:
		return execution.SandboxClaimed
	case pod.Labels[v1alpha1.LabelState] == v1alpha1.StateRetired || pod.DeletionTimestamp != nil:
		return ""
	case usable(pod):
		return execution.SandboxWarm
	}
	return execution.SandboxWarming
}
