package template

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"knative.dev/pkg/apis"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

const (
	// settledAfter is how long a sandbox is ready before it is tried: the agent
	// that enforces policies learns of a Pod as late as everybody else.
	settledAfter = 10 * time.Second
	// dialTimeout is how long a connection may take that no policy stops.
	dialTimeout = 2 * time.Second
	// A shut network is tried again from time to time, an open one soon: the
	// agent may have been late.
	tryShutAgain, tryOpenAgain = 10 * time.Minute, 30 * time.Second
)

// isolation finds out whether the cluster enforces the NetworkPolicies of
// templates. No policy admits the controller to a sandbox: if it can connect to
// a runner, so can everybody.
type isolation struct {
	pods corelisters.PodLister
	// settled is settledAfter but for tests.
	settled time.Duration

	mu sync.Mutex
	// found are the latest findings by the templates' names.
	found map[types.NamespacedName]finding
}

// finding is what a try has shown.
type finding struct {
	// template is whose sandbox was tried.
	template types.UID
	at       time.Time
	open     bool
	// sandbox is the one that was tried.
	sandbox string
}

// next is when to try again.
func (f finding) next() time.Time {
	if f.open {
		return f.at.Add(tryOpenAgain)
	}
	return f.at.Add(tryShutAgain)
}

// condition says what a template's sandboxes are known to be; the zero finding
// stands for nothing.
func (f finding) condition() apis.Condition {
	c := apis.Condition{Type: v1alpha1.ConditionNetworkIsolated, Severity: apis.ConditionSeverityInfo}
	switch {
	case f.at.IsZero():
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, v1alpha1.ReasonUntried, "no sandbox has been warm for long enough to be tried"
	case f.open:
		c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonNotEnforced
		c.Message = "the cluster does not enforce NetworkPolicies: the controller, which none admits, has connected to sandbox " + f.sandbox
	default:
		c.Status = corev1.ConditionTrue
	}
	return c
}

// check returns the condition of a template, and when to ask again. It tries a
// sandbox if the latest finding is too old.
func (i *isolation) check(ctx context.Context, t *v1alpha1.SandboxTemplate, now time.Time) (apis.Condition, time.Time) {
	key := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	f := i.latest(key, t.UID)
	if now.Before(f.next()) && !f.at.IsZero() {
		return f.condition(), f.next()
	}
	// The cache of a started informer does not fail.
	pods, _ := i.pods.Pods(t.Namespace).List(labels.SelectorFromSet(labels.Set{v1alpha1.LabelTemplate: t.Name, v1alpha1.LabelState: v1alpha1.StateWarm}))
	pod := settled(pods, now.Add(-i.settled))
	if pod == nil {
		return f.condition(), now.Add(settledAfter)
	}
	f = finding{template: t.UID, at: now, open: reach(ctx, pod, t.Spec.RunnerPort), sandbox: pod.Name}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.found[key] = f
	return f.condition(), f.next()
}

// latest is the latest finding about a template, and not about an earlier one
// of its name.
func (i *isolation) latest(key types.NamespacedName, template types.UID) finding {
	i.mu.Lock()
	defer i.mu.Unlock()
	if f := i.found[key]; f.template == template {
		return f
	}
	return finding{}
}

// forget drops what is known of a template that is gone.
func (i *isolation) forget(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.found, key)
}

// settled returns a Pod that has been ready since a time; nil if there is none.
func settled(pods []*corev1.Pod, since time.Time) *corev1.Pod {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.After(since) {
				return pod
			}
		}
	}
	return nil
}

// reach reports whether a Pod's runner takes a connection. It sends nothing.
func reach(ctx context.Context, pod *corev1.Pod, port int32) bool {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
