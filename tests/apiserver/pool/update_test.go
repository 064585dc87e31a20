package pool_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// lowest follows the number of warm sandboxes until stopped, and returns the
// lowest that it had once it had been full.
func lowest(sp *stage.Space, full int) (stop func() int) {
	sp.TB.Helper()
	ctx, cancel := context.WithCancel(sp.TB.Context())
	w, err := sp.Kube.CoreV1().Pods(sp.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelPool, ResourceVersion: "0"})
	if err != nil {
		sp.TB.Fatal(err)
	}
	result := make(chan int)
	go func() {
		warm, least, wasFull := map[string]bool{}, full, false
		for e := range w.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if e.Type != watch.Deleted && pod.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm && pod.Status.PodIP != "" {
				warm[pod.Name] = true
			} else {
				delete(warm, pod.Name)
			}
			wasFull = wasFull || len(warm) >= full
			if wasFull {
				least = min(least, len(warm))
			}
		}
		result <- least
	}()
	return func() int { cancel(); return <-result }
}

// TestP5 rolls a template out.
func TestP5(t *testing.T) {
	for name, maxUnavailable := range map[string]int32{"none unavailable": 0, "two unavailable": 2} {
		t.Run(name, func(t *testing.T) {
			sp := shared.Space(t)
			node := sp.Node(fakenode.Options{WarmUp: 100 * time.Millisecond})
			p := sp.Pool("code", "python", 6)
			p.Spec.UpdateStrategy = v1alpha1.UpdateStrategy{Type: v1alpha1.UpdateRolling, RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: maxUnavailable}}
			sp.Create(sp.Template("python", node), p)
			sp.Controller()
			claimant := sp.Claimant()
			sp.Eventually("six sandboxes are warm", func() bool { return sp.Warm() == 6 && claimant.Status()[0].Warm == 6 })
			stop := lowest(sp, 6)
			sp.Relabel("python", "edition", "new")
			sp.Eventually("a new sandbox is warm", func() bool { return fresh(sp) > 0 })
			sp.Eventually("all sandboxes are new", func() bool { return fresh(sp) == 6 && len(sp.Pods("")) == 6 })
			if least := stop(); least < 6-int(maxUnavailable) {
				t.Errorf("only %d of 6 sandboxes were warm", least)
			}
			s := mustClaim(t, claimant)
			use(t, s)
			for _, pod := range sp.Pods(v1alpha1.StateClaimed) {
				if pod.Labels["edition"] != "new" {
					t.Errorf("claim got the old sandbox %s", pod.Name)
				}
			}
			s.Release()
			settled(sp, 6)
			noFaults(t, node)
		})
	}
}

// fresh counts the warm sandboxes of the new template.
func fresh(sp *stage.Space) (n int) {
	for _, pod := range sp.Pods(v1alpha1.StateWarm) {
		if pod.Labels["edition"] == "new" && pod.Status.PodIP != "" {
			n++
		}
	}
	return n
}

// TestP6 lets warm sandboxes die in every way.
func TestP6(t *testing.T) {
	unready := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady"}}}
	failed := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
	ways := map[string]func(*stage.Space, *fakenode.Node, string) error{
		"the program ends": func(sp *stage.Space, n *fakenode.Node, pod string) error {
			return n.SetStatus(sp.TB.Context(), pod, corev1.PodStatus{Phase: corev1.PodSucceeded})
		},
		"the Pod is evicted": func(sp *stage.Space, n *fakenode.Node, pod string) error {
			return n.SetStatus(sp.TB.Context(), pod, failed)
		},
		"the node is lost": func(sp *stage.Space, n *fakenode.Node, pod string) error {
			return n.SetStatus(sp.TB.Context(), pod, unready)
		},
		"the node is drained": func(sp *stage.Space, _ *fakenode.Node, pod string) error {
			return sp.Kube.CoreV1().Pods(sp.Namespace).Delete(sp.TB.Context(), pod, metav1.DeleteOptions{})
		},
	}
	for name, kill := range ways {
		t.Run(name, func(t *testing.T) {
			sp := shared.Space(t)
			node := sp.Node(fakenode.Options{})
			sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
			sp.Controller()
			p := sp.Claimant()
			sp.Eventually("two sandboxes are warm and known", func() bool {
				return sp.Warm() == 2 && p.Status()[0].Warm == 2 && sp.WarmPool("code").Status.ReadyReplicas == 2
			})
			dead := map[string]bool{}
			for _, pod := range sp.Pods("") {
				dead[pod.Name] = true
				if err := kill(sp, node, pod.Name); err != nil {
					t.Fatal(err)
				}
			}
			sp.Eventually("the claimant knows", func() bool { return p.Status()[0].Warm == 0 || sp.Warm() == 2 })
			s := mustClaim(t, p)
			if dead[s.Name()] {
				t.Errorf("the dead sandbox %s was handed out", s.Name())
			}
			use(t, s)
			s.Release()
			settled(sp, 2)
			for _, pod := range sp.Pods("") {
				if dead[pod.Name] {
					t.Errorf("the dead sandbox %s is still there", pod.Name)
				}
			}
			noFaults(t, node)
		})
	}
}
