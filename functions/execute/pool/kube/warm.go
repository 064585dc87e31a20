package kube

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/plan"
)

// warmSet is the sandboxes that can be claimed, by pool and revision, the oldest
// first, so that a claim need not look through all that there are.
type warmSet map[string]map[string][]*entry

// add puts a sandbox in its place.
func (s warmSet) add(e *entry) {
	poolName, revision := e.pod.Labels[v1alpha1.LabelPool], e.pod.Labels[v1alpha1.LabelRevision]
	if s[poolName] == nil {
		s[poolName] = map[string][]*entry{}
	}
	l := s[poolName][revision]
	if i, found := slices.BinarySearchFunc(l, e, older); !found {
		s[poolName][revision] = slices.Insert(l, i, e)
	}
}

// remove takes a sandbox out, if it is there.
func (s warmSet) remove(e *entry) {
	poolName, revision := e.pod.Labels[v1alpha1.LabelPool], e.pod.Labels[v1alpha1.LabelRevision]
	l := s[poolName][revision]
	i, found := slices.BinarySearchFunc(l, e, older)
	if !found {
		return
	}
	if l = slices.Delete(l, i, i+1); len(l) > 0 {
		s[poolName][revision] = l
		return
	}
	if delete(s[poolName], revision); len(s[poolName]) == 0 {
		delete(s, poolName)
	}
}

func older(a, b *entry) int { return plan.Older(&a.planned, &b.planned) }

func (s warmSet) count(poolName string) (n int) {
	for _, l := range s[poolName] {
		n += len(l)
	}
	return n
}

// of returns the sandboxes of a pool to choose from: those of a revision, or
// if there are none those of the revision that has the oldest.
func (s warmSet) of(poolName, revision string) []*entry {
	from := s[poolName][revision]
	if len(from) > 0 {
		return from
	}
	for _, l := range s[poolName] {
		if len(from) == 0 || older(l[0], from[0]) < 0 {
			from = l
		}
	}
	return from
}

// anyOf returns a sandbox of a pool at random.
func (s warmSet) anyOf(poolName string) *entry {
	for _, l := range s[poolName] { // in random order
		return pick(l, true, nil)
	}
	return nil
}

// pick returns the first that is not avoided, or the first of all. It begins at
// random where that is asked for.
func pick(from []*entry, atRandom bool, avoid func(*corev1.Pod) bool) *entry {
	if len(from) == 0 {
		return nil
	}
	start := 0
	if atRandom {
		start = rand.IntN(len(from))
	}
	if avoid != nil {
		for i := range from {
			if e := from[(start+i)%len(from)]; !avoid(e.pod) {
				return e
			}
		}
	}
	return from[start]
}
