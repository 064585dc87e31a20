package kube

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// A caller that hangs up while its sandbox is being taken hides none: it is a
// candidate again, or given up if the attempt had won it after all.
func TestHangingUpHidesNoSandbox(t *testing.T) {
	for name, test := range map[string]struct {
		won       bool
		candidate bool
		state     string
	}{
		"lost": {false, true, v1alpha1.StateWarm},
		"won":  {true, false, v1alpha1.StateRetired},
	} {
		t.Run(name, func(t *testing.T) {
			e := warmPod("p", "r", func(p *corev1.Pod) { p.Namespace = "n" })
			e.taken = true
			live := e.pod.DeepCopy()
			if test.won {
				live.Labels[v1alpha1.LabelState], live.Labels[v1alpha1.LabelClaim] = v1alpha1.StateClaimed, "claim-1"
			}
			client := fake.NewClientset(live)
			ctx, hangUp := context.WithCancel(t.Context())
			first := true
			client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if !first {
					return false, nil, nil
				}
				first = false
				hangUp()
				return true, nil, ctx.Err()
			})
			c := testCache(t, e)
			p := &Pool{namespace: "n", kube: client, cache: c, ctx: t.Context()}
			a := &attempt{Pool: p, name: "claim-1"}
			taken := e.candidate
			if pod, err := a.win(ctx, &taken); pod != nil || err == nil {
				t.Fatalf("won %v, %v", pod, err)
			}
			p.work.Wait()
			if e.taken == test.candidate {
				t.Errorf("it is a candidate: %v, want %v", !e.taken, test.candidate)
			}
			after, err := client.CoreV1().Pods("n").Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := after.Labels[v1alpha1.LabelState]; got != test.state {
				t.Errorf("its state is %q, want %q", got, test.state)
			}
		})
	}
}
