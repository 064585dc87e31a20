package pool_test

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// condition reports a template's condition once the controller has seen it.
func condition(sp *stage.Space, name string, kind apis.ConditionType) *apis.Condition {
	sp.TB.Helper()
	x, err := sp.Preheat.SandboxV1alpha1().SandboxTemplates(sp.Namespace).Get(sp.TB.Context(), name, metav1.GetOptions{})
	if err != nil {
		sp.TB.Fatal(err)
	}
	if x.Status.ObservedGeneration != x.Generation {
		return nil
	}
	return x.Status.GetCondition(kind)
}

// TestTemplate follows a template from hardened to loosened to refused.
func TestTemplate(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 1))
	sp.Controller()
	sp.Eventually("the template is hardened", func() bool { return condition(sp, "python", v1alpha1.ConditionHardened).IsTrue() })
	var policy *networkingv1.NetworkPolicy
	sp.Eventually("its sandboxes are shut off", func() (ok bool) {
		var err error
		policy, err = sp.Kube.NetworkingV1().NetworkPolicies(sp.Namespace).Get(t.Context(), "preheat-python", metav1.GetOptions{})
		return err == nil
	})
	spec := policy.Spec
	if len(spec.Egress) != 0 || len(spec.PolicyTypes) != 2 || len(spec.Ingress) != 1 || len(spec.Ingress[0].Ports) != 1 ||
		spec.Ingress[0].Ports[0].Port.IntVal != node.Port() || spec.PodSelector.MatchLabels[v1alpha1.LabelTemplate] != "python" {
		t.Errorf("the policy is %+v", spec)
	}
	for _, from := range spec.Ingress[0].From {
		for what, selector := range map[string]*metav1.LabelSelector{"Pods": from.PodSelector, "namespaces": from.NamespaceSelector} {
			if selector == nil || len(selector.MatchExpressions) != 1 || selector.MatchExpressions[0].Key != v1alpha1.LabelClaimant {
				t.Errorf("the policy admits %s that match %v", what, selector)
			}
		}
	}
	sp.Eventually("a changed policy is put right", func() bool {
		changed := policy.DeepCopy()
		changed.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
		changed.ResourceVersion = ""
		if _, err := sp.Kube.NetworkingV1().NetworkPolicies(sp.Namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			now, err := sp.Kube.NetworkingV1().NetworkPolicies(sp.Namespace).Get(t.Context(), "preheat-python", metav1.GetOptions{})
			if err == nil && len(now.Spec.Egress) == 0 {
				return true
			}
			time.Sleep(20 * time.Millisecond)
		}
		return false
	})

	patch := func(patch string) {
		t.Helper()
		_, err := sp.Preheat.SandboxV1alpha1().SandboxTemplates(sp.Namespace).Patch(t.Context(), "python", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec":{"podTemplate":{"spec":{"securityContext":{"runAsNonRoot":false}}}}}`)
	sp.Eventually("a weak template is refused", func() bool {
		c := condition(sp, "python", v1alpha1.ConditionReady)
		return c.IsFalse() && c.Reason == v1alpha1.ReasonRefused
	})
	if c := condition(sp, "python", v1alpha1.ConditionHardened); !c.IsUnknown() {
		t.Errorf("a refused template is %s hardened", c.Status)
	}
	sp.Eventually("its pool tells", func() bool {
		c := sp.WarmPool("code").Status.GetCondition(v1alpha1.ConditionReady)
		return c.IsFalse() && c.Reason == v1alpha1.ReasonTemplateInvalid
	})
	if len(sp.Pods("")) != 1 {
		t.Error("the pool has not kept the sandbox that it had")
	}
	patch(`{"spec":{"loosen":["RunAsRoot"]}}`)
	sp.Eventually("what is named is allowed and shown", func() bool {
		c := condition(sp, "python", v1alpha1.ConditionHardened)
		return c.IsFalse() && c.Reason == v1alpha1.ReasonLoosened && condition(sp, "python", v1alpha1.ConditionReady).IsTrue()
	})
	sp.Eventually("the pool follows", func() bool {
		pods := sp.Pods(v1alpha1.StateWarm)
		return len(pods) == 1 && !*pods[0].Spec.SecurityContext.RunAsNonRoot
	})
}

// TestAutoscaling: a pool that is claimed often grows, within its bounds.
func TestAutoscaling(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{WarmUp: 2 * time.Second})
	auto := sp.Pool("code", "python", 0)
	auto.Spec.Replicas, auto.Spec.Autoscaling = nil, &v1alpha1.Autoscaling{Min: 1, Max: 3}
	sp.Create(sp.Template("python", node), auto)
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("one sandbox is warm", func() bool { return sp.Warm() == 1 && sp.WarmPool("code").Status.DesiredReplicas == 1 })
	var held []pool.Sandbox
	for range 20 {
		if sp.WarmPool("code").Status.DesiredReplicas == 3 {
			break
		}
		held = append(held, mustClaim(t, p))
		held[len(held)-1].Release()
	}
	sp.Eventually("three sandboxes are warm", func() bool { return sp.Warm() == 3 && sp.WarmPool("code").Status.DesiredReplicas == 3 })
	if len(sp.Events("Resized")) == 0 {
		t.Error("no event tells of the new size")
	}
	noFaults(t, node)
}
