package claim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/session"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/warmpool"
)

// settleAfter is the age at which a claim that its claimant binds gets a
// status. Most are over by then, and the write would only cost.
const settleAfter = time.Second

// step is what to do about a claim now.
type step struct {
	// ready is the Ready condition's value; empty leaves the status alone.
	ready   corev1.ConditionStatus
	reason  string
	message string
	// sandbox is the bound sandbox.
	sandbox *v1alpha1.BoundSandbox
	// finish ends the claim by itself, remove deletes it.
	finish, remove bool
	// wake is when to look again; zero means when something happens.
	wake time.Time
}

// plan decides about a claim. pod is its sandbox or nil, poolFound says
// whether its pool exists.
func plan(c *v1alpha1.SandboxClaim, pod *corev1.Pod, poolFound bool, now time.Time) step {
	if at := c.Status.FinishedAt; at != nil {
		expiry := at.Add(time.Duration(ttl(c)) * time.Second)
		return step{remove: !now.Before(expiry), wake: expiry}
	}
	end := warmpool.ShutdownTime(c)
	if !now.Before(end) {
		return step{ready: corev1.ConditionFalse, reason: v1alpha1.ReasonExpired, finish: true,
			message: "the claim's time was over at " + end.UTC().Format(time.RFC3339)}
	}
	var s step
	switch {
	case pod != nil:
		s = bound(c, pod)
	case c.Status.Sandbox != nil:
		s = lost(c.Status.Sandbox.Name, "is gone")
	default:
		s = unbound(c, poolFound, now)
	}
	if settled := c.CreationTimestamp.Add(settleAfter); c.Spec.Binding == v1alpha1.BindingClaimant && !s.finish && now.Before(settled) {
		return step{wake: settled}
	}
	if !s.finish && (s.wake.IsZero() || end.Before(s.wake)) {
		s.wake = end
	}
	return s
}

func ttl(c *v1alpha1.SandboxClaim) int32 {
	if t := c.Spec.Lifecycle.TTLSecondsAfterFinished; t != nil {
		return *t
	}
	return 0
}

func bound(c *v1alpha1.SandboxClaim, pod *corev1.Pod) step {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return ended(c, pod)
	}
	if pod.DeletionTimestamp != nil {
		return lost(pod.Name, "is being deleted")
	}
	s := step{ready: corev1.ConditionTrue, sandbox: &v1alpha1.BoundSandbox{Name: pod.Name}}
	for _, ip := range pod.Status.PodIPs {
		s.sandbox.PodIPs = append(s.sandbox.PodIPs, ip.IP)
	}
	return s
}

// ended finishes a claim whose sandbox has ended by itself, as those of sessions
// do in time.
func ended(c *v1alpha1.SandboxClaim, pod *corev1.Pod) step {
	s := lost(pod.Name, "has ended: "+string(pod.Status.Phase))
	if c.Spec.Session == nil {
		return s
	}
	if end := session.EndOf(pod); end != execution.SessionSandboxLost {
		s.reason, s.message = session.Reason(end), "the session in sandbox "+pod.Name+" has ended: "+string(end)
	}
	return s
}

func lost(name, how string) step {
	return step{ready: corev1.ConditionFalse, reason: v1alpha1.ReasonSandboxLost, message: "sandbox " + name + " " + how, finish: true}
}

func unbound(c *v1alpha1.SandboxClaim, poolFound bool, now time.Time) step {
	deadline := warmpool.BindDeadline(c)
	switch {
	case !now.Before(deadline):
		return step{ready: corev1.ConditionFalse, reason: v1alpha1.ReasonNoSandbox, finish: true,
			message: "no sandbox became free in time"}
	case !poolFound:
		return step{ready: corev1.ConditionFalse, reason: v1alpha1.ReasonPoolNotFound, wake: deadline,
			message: "there is no SandboxWarmPool " + c.Spec.WarmPoolRef.Name}
	}
	return step{ready: corev1.ConditionUnknown, reason: v1alpha1.ReasonWaiting, message: "waiting for a warm sandbox", wake: deadline}
}
