package pool_test

import (
	"net/http"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/faults"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// policyOf returns the NetworkPolicy of a template, or nil.
func policyOf(sp *stage.Space, template string) *networkingv1.NetworkPolicy {
	sp.TB.Helper()
	p, err := sp.Kube.NetworkingV1().NetworkPolicies(sp.Namespace).Get(sp.TB.Context(), "preheat-"+template, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		sp.TB.Fatal(err)
	}
	return p
}

func deleteTemplate(sp *stage.Space, name string) {
	sp.TB.Helper()
	err := sp.Preheat.SandboxV1alpha1().SandboxTemplates(sp.Namespace).Delete(sp.TB.Context(), name, metav1.DeleteOptions{})
	if err != nil {
		sp.TB.Fatal(err)
	}
}

// unusedPolicyGoes waits until the controller has deleted the policy of a
// template that was made and deleted now: what it deletes as early as that, of
// templates that were deleted before, is gone then.
func unusedPolicyGoes(sp *stage.Space, node *fakenode.Node, name string) {
	sp.TB.Helper()
	sp.Create(sp.Template(name, node))
	sp.Eventually("the other template has its policy", func() bool { return policyOf(sp, name) != nil })
	deleteTemplate(sp, name)
	sp.Eventually("the other template's policy is gone", func() bool { return policyOf(sp, name) == nil })
}

// TestNetworkPolicyOutlivesItsTemplate deletes and replaces a template, and its
// pool, while a program runs in a sandbox of it: the policy goes with the last
// sandbox.
func TestNetworkPolicyOutlivesItsTemplate(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 1))
	first := sp.Controller()
	p := sp.Claimant()
	sp.Eventually("a sandbox is warm behind the policy", func() bool {
		return sp.Warm() == 1 && p.Status()[0].Warm == 1 && policyOf(sp, "python") != nil
	})
	w := want()
	w.Deadline = time.Now().Add(10 * time.Minute)
	s, err := p.Claim(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	policy := policyOf(sp, "python")
	if len(policy.OwnerReferences) > 0 {
		t.Errorf("the policy is deleted with its owner %+v", policy.OwnerReferences)
	}
	kept := func(while string) {
		t.Helper()
		if now := policyOf(sp, "python"); now == nil || now.UID != policy.UID {
			t.Fatalf("%s, the policy of a sandbox that is in use was deleted", while)
		}
	}

	// As kubectl replace --force does.
	deleteTemplate(sp, "python")
	sp.Create(sp.Template("python", node))
	sp.Eventually("the new template is Ready", func() bool { return condition(sp, "python", v1alpha1.ConditionReady).IsTrue() })
	kept("after the template was replaced")

	if err := sp.Preheat.SandboxV1alpha1().SandboxWarmPools(sp.Namespace).Delete(t.Context(), "code", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deleteTemplate(sp, "python")
	sp.Eventually("only the claimed sandbox is left", func() bool { return len(sp.Pods("")) == 1 })
	unusedPolicyGoes(sp, node, "a")
	kept("after pool and template were deleted")

	first.Kill()
	sp.Controller()
	unusedPolicyGoes(sp, node, "b")
	kept("after the controller was started again")

	s.Release()
	sp.Eventually("the policy goes with the last sandbox", func() bool {
		// In this order: no sandbox comes any more.
		gone := policyOf(sp, "python") == nil
		if pods := sp.Pods(""); gone && len(pods) > 0 {
			t.Fatalf("the policy has gone before %d sandboxes", len(pods))
		}
		return gone
	})
	noFaults(t, node)
}

// TestForeignNetworkPolicy: somebody else's NetworkPolicy of the name that a
// template's would have shuts nothing, whether or not the cache shows it yet.
func TestForeignNetworkPolicy(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	in, _ := proxied(sp)
	sp.Create(sp.Template("other", node))
	sp.Eventually("the controller works", func() bool { return condition(sp, "other", v1alpha1.ConditionReady).IsTrue() })

	in.Set(func(c faults.Call) faults.Fault {
		if c.Resource == "networkpolicies" && (c.Verb == "WATCH" || c.Verb == "LIST") {
			return faults.Fault{Status: http.StatusServiceUnavailable}
		}
		return faults.Fault{}
	})
	in.CutWatches()
	policies := sp.Kube.NetworkingV1().NetworkPolicies(sp.Namespace)
	_, err := policies.Create(t.Context(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "preheat-python"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sp.Create(sp.Template("python", node))
	told := func() bool {
		c := condition(sp, "python", v1alpha1.ConditionNetworkPolicy)
		if c.IsTrue() {
			t.Fatal("the template is said to be shut off by somebody else's policy")
		}
		return c.IsFalse() && c.Reason == v1alpha1.ReasonForeignNetworkPolicy && condition(sp, "python", v1alpha1.ConditionReady).IsFalse()
	}
	sp.Eventually("the foreign policy is told while the cache does not have it", told)

	in.Clear()
	deleteTemplate(sp, "python")
	sp.Create(sp.Template("python", node))
	sp.Eventually("the foreign policy is told of a new template", told)
	if err := policies.Delete(t.Context(), "preheat-python", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sp.Eventually("the template's own policy is in place", func() bool {
		p := policyOf(sp, "python")
		return p != nil && len(p.Spec.PolicyTypes) == 2 && condition(sp, "python", v1alpha1.ConditionReady).IsTrue()
	})
}
