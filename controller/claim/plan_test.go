package claim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

func TestPlan(t *testing.T) {
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}}
	ended := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	idle := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "idle"}}},
	}}}
	ofSession := func(c *v1alpha1.SandboxClaim) {
		c.Spec.Session = &v1alpha1.ClaimSession{Language: "python", IdleSeconds: 60}
	}
	deleted := running.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: at(1)}
	tests := map[string]struct {
		change func(*v1alpha1.SandboxClaim)
		pod    *corev1.Pod
		noPool bool
		now    int
		want   step
	}{
		"waits": {now: 5, want: step{ready: "Unknown", reason: "Waiting", wake: at(60)}},
		"waits for its pool": {noPool: true, now: 5,
			want: step{ready: "False", reason: "PoolNotFound", wake: at(60)}},
		"waited in vain": {now: 60, want: step{ready: "False", reason: "NoSandboxInTime", finish: true}},
		"is bound":       {pod: running, now: 5, want: step{ready: "True", wake: at(600)}},
		"is bound after its bind timeout": {pod: running, now: 100,
			want: step{ready: "True", wake: at(600)}},
		"its time is over": {pod: running, now: 600, want: step{ready: "False", reason: "Expired", finish: true}},
		"its sandbox ended": {pod: ended, now: 5,
			want: step{ready: "False", reason: "SandboxLost", finish: true}},
		"its session was idle": {pod: idle, now: 5, change: ofSession, want: step{ready: "False", reason: "Idle", finish: true}},
		"its session's sandbox was lost": {pod: ended, now: 5, change: ofSession,
			want: step{ready: "False", reason: "SandboxLost", finish: true}},
		"what a sandbox says that is no session's does not count": {pod: idle, now: 5,
			want: step{ready: "False", reason: "SandboxLost", finish: true}},
		"its sandbox is being deleted": {pod: deleted, now: 5,
			want: step{ready: "False", reason: "SandboxLost", finish: true}},
		"its sandbox is gone": {now: 5,
			change: func(c *v1alpha1.SandboxClaim) { c.Status.Sandbox = &v1alpha1.BoundSandbox{Name: "p"} },
			want:   step{ready: "False", reason: "SandboxLost", finish: true}},
		"a claimant's is left alone at first": {
			change: func(c *v1alpha1.SandboxClaim) { c.Spec.Binding = v1alpha1.BindingClaimant },
			want:   step{wake: at(1)}},
		"a claimant's gets a status later": {pod: running, now: 2,
			change: func(c *v1alpha1.SandboxClaim) { c.Spec.Binding = v1alpha1.BindingClaimant },
			want:   step{ready: "True", wake: at(600)}},
		"has finished": {now: 10,
			change: func(c *v1alpha1.SandboxClaim) { c.Status.FinishedAt = &metav1.Time{Time: at(5)} },
			want:   step{wake: at(35)}},
		"has finished long ago": {now: 35,
			change: func(c *v1alpha1.SandboxClaim) { c.Status.FinishedAt = &metav1.Time{Time: at(5)} },
			want:   step{remove: true, wake: at(35)}},
		"ends after an hour by default": {pod: running, now: 3600,
			change: func(c *v1alpha1.SandboxClaim) { c.Spec.Lifecycle.ShutdownTime = nil },
			want:   step{ready: "False", reason: "Expired", finish: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.SandboxClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.Time{Time: t0}},
				Spec: v1alpha1.SandboxClaimSpec{
					WarmPoolRef: v1alpha1.Reference{Name: "pool"}, Binding: v1alpha1.BindingController, BindTimeoutSeconds: 60,
					Lifecycle: v1alpha1.Lifecycle{ShutdownTime: &metav1.Time{Time: at(600)}, TTLSecondsAfterFinished: ptr.To[int32](30)},
				},
			}
			if test.change != nil {
				test.change(c)
			}
			got := plan(c, test.pod, !test.noPool, at(test.now))
			if (got.sandbox != nil) != (got.ready == corev1.ConditionTrue) {
				t.Errorf("ready %q with sandbox %v", got.ready, got.sandbox)
			}
			if quiet := got.ready == "" || got.ready == corev1.ConditionTrue; quiet != (got.message == "") {
				t.Errorf("ready %q with message %q", got.ready, got.message)
			}
			got.sandbox, got.message = nil, ""
			if got != test.want {
				t.Errorf("plan = %+v, want %+v", got, test.want)
			}
		})
	}
}
