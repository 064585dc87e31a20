package pool_test

import (
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/faults"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// proxied starts a controller whose calls go through an injector.
func proxied(sp *stage.Space) (*faults.Injector, *stage.Controller) {
	sp.TB.Helper()
	in := faults.New()
	config := sp.Config()
	stage.AsController(config)
	through, stop, err := in.Proxy(config)
	if err != nil {
		sp.TB.Fatal(err)
	}
	c := sp.ControllerAt(through)
	sp.TB.Cleanup(func() {
		c.Kill()
		if err := stop(); err != nil {
			sp.TB.Error(err)
		}
	})
	return in, c
}

// TestP3: what keeps a pool from being filled is told as the pool's condition
// and in an event, creations stay few (I9), and the pool fills up once it is over.
func TestP3(t *testing.T) {
	fate := fakenode.Ready
	stuck := func(f fakenode.Fate) func(*testing.T, *stage.Space) func() {
		return func(*testing.T, *stage.Space) func() { fate = f; return nil }
	}
	tests := []struct {
		reason string
		// prepare brings the trouble, and returns what ends it. Stuck Pods
		// give way to those of a new template.
		prepare   func(*testing.T, *stage.Space) (repair func())
		maxWrites int
	}{
		{v1alpha1.ReasonQuotaExceeded, quota, 6},
		{v1alpha1.ReasonForbidden, refusingPolicy, 6},
		{v1alpha1.ReasonImagePullFailed, stuck(fakenode.Unpullable), 3},
		{v1alpha1.ReasonUnschedulable, stuck(fakenode.Unschedulable), 3},
		{v1alpha1.ReasonSandboxFailed, stuck(fakenode.Crashes), 9},
		{v1alpha1.ReasonTemplateNotFound, nil, 0},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			sp := shared.Space(t)
			fate = fakenode.Ready
			var repair func()
			if test.prepare != nil {
				repair = test.prepare(t, sp)
			}
			sick := fate
			node := sp.Node(fakenode.Options{Fate: func(p *corev1.Pod) fakenode.Fate {
				if p.Labels["repaired"] != "" {
					return fakenode.Ready
				}
				return sick
			}})
			tmpl := sp.Template("python", node)
			if test.reason != v1alpha1.ReasonTemplateNotFound {
				sp.Create(tmpl)
			}
			sp.Create(sp.Pool("code", "python", 3))
			in, _ := proxied(sp)
			sp.Eventually("the pool tells "+test.reason, func() bool {
				c := sp.WarmPool("code").Status.GetCondition(v1alpha1.ConditionReady)
				return c.IsFalse() && c.Reason == test.reason && c.Message != ""
			})
			start := time.Now()
			time.Sleep(3 * time.Second)
			if n := in.Count(faults.Call{Verb: "POST", Resource: "pods"}); n > test.maxWrites {
				t.Errorf("I9: %d Pods were asked for within %s, want no more than %d", n, time.Since(start).Round(time.Second), test.maxWrites)
			}
			sp.Eventually("an event tells of it", func() bool { return len(sp.Events(test.reason)) > 0 })
			switch {
			case repair != nil:
				repair()
			case test.reason == v1alpha1.ReasonTemplateNotFound:
				sp.Create(tmpl)
			default:
				sp.Relabel("python", "repaired", "yes")
			}
			sp.Eventually("the pool is filled and Ready", func() bool {
				return sp.Warm() == 3 && sp.WarmPool("code").Status.GetCondition(v1alpha1.ConditionReady).IsTrue()
			})
			noFaults(t, node)
		})
	}
}

// quota lets the namespace have no Pods until repaired.
func quota(t *testing.T, sp *stage.Space) func() {
	quotas := sp.Kube.CoreV1().ResourceQuotas(sp.Namespace)
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	q, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Without a controller manager the quota's status is the test's to write.
	q.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if _, err := quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(sp)
	return func() {
		if err := quotas.Delete(t.Context(), "pods", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// refusingPolicy stands for a refusing admission webhook.
func refusingPolicy(t *testing.T, sp *stage.Space) func() {
	api := sp.Kube.AdmissionregistrationV1()
	name := "refuse-" + sp.Namespace
	_, err := api.ValidatingAdmissionPolicies().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: "request.namespace != '" + sp.Namespace + "'", Message: "not here", Reason: ptr.To(metav1.StatusReasonForbidden),
			}},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = api.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitRefusal(sp)
	return func() {
		if err := api.ValidatingAdmissionPolicyBindings().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitRefusal waits until the API server refuses Pods in the namespace.
func awaitRefusal(sp *stage.Space) {
	sp.Eventually("Pods are refused", func() bool {
		_, err := sp.Kube.CoreV1().Pods(sp.Namespace).Create(sp.TB.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
}

// TestClaimOverQuota: admission decides about claims on the fast path as well,
// and a sandbox that was taken for a refused claim does not stay behind.
func TestClaimOverQuota(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 && p.Status()[0].Warm == 2 })
	const counted = "count/sandboxclaims.sandbox.preheat.dev"
	quotas := sp.Kube.CoreV1().ResourceQuotas(sp.Namespace)
	none := corev1.ResourceList{counted: resource.MustParse("0")}
	q, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "claims"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if _, err := quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	sp.Eventually("claims are refused", func() bool {
		_, err := sp.Preheat.SandboxV1alpha1().SandboxClaims(sp.Namespace).Create(t.Context(), &v1alpha1.SandboxClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: v1alpha1.SandboxClaimSpec{WarmPoolRef: v1alpha1.Reference{Name: "code"}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	refused := func() {
		t.Helper()
		if _, err := claim(t, p, 10*time.Second); !errors.Is(err, pool.ErrOverQuota) {
			t.Errorf("err = %v, want ErrOverQuota", err)
		}
	}
	refused()
	settled(sp, 2)
	// From then on a refusal costs no sandbox.
	sp.Eventually("both are warm to the claimant", func() bool { return p.Status()[0].Warm == 2 })
	before := node.Claimed()
	for range 5 {
		refused()
	}
	if n := node.Claimed() - before; n != 0 {
		t.Errorf("%d sandboxes were taken by refused claims", n)
	}
	if n := node.Uses(); n != 0 {
		t.Errorf("%d sandboxes were used by refused claims", n)
	}
}
