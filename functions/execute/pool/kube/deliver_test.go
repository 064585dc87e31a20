package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Whoever waits for a sandbox is given the one that was bound to its claim, the
// latest state of it, and also hears of the end of one that never was ready.
func TestBoundSandboxIsDelivered(t *testing.T) {
	bound := func(phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
		return warmPod("p", "r", func(p *corev1.Pod) {
			p.Labels[v1alpha1.LabelState], p.Labels[v1alpha1.LabelClaim] = v1alpha1.StateClaimed, "claim-1"
			p.Status.Phase, p.Status.Conditions = phase, []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		}).pod
	}
	for name, test := range map[string]struct {
		see  func(*cache)
		want corev1.PodPhase // empty: nothing is delivered
	}{
		"ready":                    {func(c *cache) { c.set(bound(corev1.PodRunning, "True")) }, corev1.PodRunning},
		"not ready yet":            {func(c *cache) { c.set(bound(corev1.PodRunning, "False")) }, ""},
		"failed":                   {func(c *cache) { c.set(bound(corev1.PodFailed, "False")) }, corev1.PodFailed},
		"ready, then failed":       {func(c *cache) { c.set(bound(corev1.PodRunning, "True")); c.set(bound(corev1.PodFailed, "False")) }, corev1.PodFailed},
		"gone before it was ready": {func(c *cache) { c.remove(bound(corev1.PodRunning, "False")) }, corev1.PodRunning},
	} {
		t.Run(name, func(t *testing.T) {
			w := &waiter{claim: "claim-1", bound: make(chan *corev1.Pod, 1), available: make(chan struct{}, 1)}
			other := &waiter{claim: "claim-2", bound: make(chan *corev1.Pod, 1), available: make(chan struct{}, 1)}
			c := testCache(t)
			pool := bound("", "").Labels[v1alpha1.LabelPool]
			c.queues = map[string]queue{pool: {w, other}}
			test.see(c)
			var got corev1.PodPhase
			select {
			case pod := <-w.bound:
				got = pod.Status.Phase
			default:
			}
			if got != test.want || len(other.bound) != 0 {
				t.Errorf("delivered %q, want %q; %d to somebody else", got, test.want, len(other.bound))
			}
		})
	}
}

// An attempt holds the Pod of its own claim, not that of an earlier claim of the
// same event.
func TestAttemptHoldsItsOwnPod(t *testing.T) {
	a := &attempt{name: "event-x", uid: "u2"}
	for uid, want := range map[string]bool{"u1": false, "u2": true} {
		pod := warmPod("p", "r", func(p *corev1.Pod) {
			p.Labels[v1alpha1.LabelClaim], p.Labels[v1alpha1.LabelClaimUID] = "event-x", uid
		}).pod
		if got := a.holds(pod); got != want {
			t.Errorf("UID %s: %v, want %v", uid, got, want)
		}
	}
}
