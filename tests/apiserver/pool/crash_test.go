package pool_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/faults"
)

// TestP7 lets claimants crash between and after their steps (I4).
func TestP7(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 3))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("three sandboxes are warm", func() bool { return sp.Warm() == 3 && p.Status()[0].Warm == 3 })

	// After the claim: it ends at its deadline.
	if _, err := p.Claim(t.Context(), pool.Claim{Language: "python", Deadline: time.Now().Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	// Between the label and the claim: the sandbox is found.
	patch, err := lock.Claim(lock.Holder{Claim: "never-made"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Kube.CoreV1().Pods(sp.Namespace).Patch(t.Context(), sp.Pods(v1alpha1.StateWarm)[0].Name, lock.PatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// Between the claim and the label: the claim gives up.
	sp.Create(&v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "never-bound"}, Spec: v1alpha1.SandboxClaimSpec{
		WarmPoolRef: v1alpha1.Reference{Name: "code"}, Binding: v1alpha1.BindingClaimant, BindTimeoutSeconds: 2,
		Lifecycle: v1alpha1.Lifecycle{TTLSecondsAfterFinished: new(int32)},
	}})
	settled(sp, 3)
	noFaults(t, node)
}

// TestP2 kills the controller at each of its writes, right after the API
// server has carried it out and before the controller can know.
func TestP2(t *testing.T) {
	for _, call := range []faults.Call{
		{Verb: "POST", Resource: "pods"}, {Verb: "PATCH", Resource: "pods"}, {Verb: "DELETE", Resource: "pods"},
		{Verb: "PUT", Resource: "sandboxclaims/status"}, {Verb: "DELETE", Resource: "sandboxclaims"},
		{Verb: "PUT", Resource: "sandboxwarmpools/status"}, {Verb: "PUT", Resource: "sandboxtemplates/status"},
		{Verb: "POST", Resource: "networkpolicies"},
	} {
		t.Run(fmt.Sprint(call), func(t *testing.T) {
			t.Parallel()
			sp := shared.Space(t)
			node := sp.Node(fakenode.Options{})
			sp.Create(sp.Template("python", node), sp.Pool("code", "python", 3))
			in, c := proxied(sp)
			var hit atomic.Bool
			reached := make(chan struct{})
			in.Set(func(x faults.Call) faults.Fault {
				if x != call {
					return faults.Fault{}
				}
				if hit.CompareAndSwap(false, true) {
					close(reached)
				}
				return faults.Fault{Lose: true}
			})
			// A refill, a roll-out, and a claim from its binding to its end.
			sp.Create(&v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.SandboxClaimSpec{
				WarmPoolRef: v1alpha1.Reference{Name: "code"},
				Lifecycle:   v1alpha1.Lifecycle{ShutdownTime: &metav1.Time{Time: time.Now().Add(4 * time.Second)}, TTLSecondsAfterFinished: new(int32)},
			}})
			sp.Relabel("python", "edition", "new")
			select {
			case <-reached:
			case <-time.After(time.Minute):
				t.Fatal("the controller never came that far")
			}
			c.Kill()
			in.Clear()
			sp.Controller()
			sp.Eventually("the target is reached", func() bool { return fresh(sp) == 3 && len(sp.Pods("")) == 3 && len(sp.Claims()) == 0 })
			noFaults(t, node)
		})
	}
}
