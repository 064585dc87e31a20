package kube

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// Languages implements pool.Pool.
func (p *Pool) Languages() []execution.Language {
	languages, conflicts := pool.MergeLanguages(describe(p.cache.offers()))
	p.conflicts.log(p.log, conflicts)
	slices.SortFunc(languages, func(a, b execution.Language) int { return cmp.Compare(a.Name, b.Name) })
	return languages
}

// describe lists each pool's languages as its template has them.
func describe(offers []offer) []execution.Language {
	var out []execution.Language
	for _, o := range offers {
		for _, l := range o.template.Spec.Languages {
			out = append(out, execution.Language{
				Name: l.Name, Aliases: l.Aliases, Version: l.Version, Warm: l.Warm, Pools: []string{o.pool.Name},
			})
		}
	}
	return out
}

// conflicts logs the aliases that templates claim in vain, when they change.
type conflicts struct {
	mu     sync.Mutex
	logged []pool.Alias
}

func (c *conflicts) log(log *slog.Logger, now []pool.Alias) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range now {
		if !slices.Contains(c.logged, a) {
			log.Warn("A template claims an alias that is another language's", "alias", a.Name, "language", a.Other, "owner", a.Owner)
		}
	}
	c.logged = now
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
