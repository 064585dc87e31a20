package template

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/reconciler"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

type templateReconciler struct {
	kube     kubernetes.Interface
	policies networkinglisters.NetworkPolicyLister
	ceiling  Ceiling
}

// ReconcileKind implements the generated Interface.
func (r *templateReconciler) ReconcileKind(ctx context.Context, t *v1alpha1.SandboxTemplate) reconciler.Event {
	conditions := t.GetConditionSet().Manage(t.GetStatus())
	b, err := Build(t, r.ceiling)
	if err != nil {
		// The pools keep the sandboxes they have, and make no new ones.
		conditions.MarkFalse(v1alpha1.ConditionValid, v1alpha1.ReasonRefused, "%s", err)
		conditions.SetCondition(apis.Condition{
			Type: v1alpha1.ConditionHardened, Status: corev1.ConditionUnknown, Severity: apis.ConditionSeverityInfo,
			Reason: v1alpha1.ReasonRefused, Message: "no sandbox can be made from the template",
		})
	} else {
		conditions.MarkTrue(v1alpha1.ConditionValid)
		t.Status.Revision = b.Revision
		conditions.SetCondition(hardened(b.Loosened))
	}
	if t.Spec.NetworkPolicyManagement == v1alpha1.NetworkPolicyUnmanaged {
		conditions.MarkTrueWithReason(v1alpha1.ConditionNetworkPolicy, v1alpha1.ReasonUnmanaged, "the template leaves its NetworkPolicy to others")
		return r.deletePolicy(ctx, t)
	}
	if err := r.applyPolicy(ctx, t); err != nil {
		conditions.MarkFalse(v1alpha1.ConditionNetworkPolicy, v1alpha1.ReasonCreateFailed, "%s", err)
		return err
	}
	conditions.MarkTrue(v1alpha1.ConditionNetworkPolicy)
	return nil
}

// hardened is the condition that tells of set-aside defaults.
func hardened(loosened []v1alpha1.Loosening) apis.Condition {
	c := apis.Condition{Type: v1alpha1.ConditionHardened, Status: corev1.ConditionTrue, Severity: apis.ConditionSeverityInfo}
	if len(loosened) == 0 {
		return c
	}
	names := make([]string, len(loosened))
	for i, l := range loosened {
		names[i] = string(l)
	}
	c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonLoosened
	c.Message = "the template sets aside: " + strings.Join(names, ", ")
	return c
}

func (r *templateReconciler) applyPolicy(ctx context.Context, t *v1alpha1.SandboxTemplate) error {
	want := networkPolicy(t)
	have, err := r.policies.NetworkPolicies(t.Namespace).Get(want.Name)
	client := r.kube.NetworkingV1().NetworkPolicies(t.Namespace)
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache is behind, its next event brings this back
		}
		return wrap(want, "create", err)
	case err != nil:
		return wrap(want, "get", err)
	case !metav1.IsControlledBy(have, t):
		return fmt.Errorf("NetworkPolicy %s exists and belongs to something else", want.Name)
	case equality.Semantic.DeepEqual(have.Spec, want.Spec):
		return nil
	}
	have = have.DeepCopy()
	have.Spec = want.Spec
	_, err = client.Update(ctx, have, metav1.UpdateOptions{})
	return wrap(want, "update", err)
}

func (r *templateReconciler) deletePolicy(ctx context.Context, t *v1alpha1.SandboxTemplate) error {
	have, err := r.policies.NetworkPolicies(t.Namespace).Get(NetworkPolicyName(t.Name))
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(have, t) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the NetworkPolicy of template %s: %w", t.Name, err)
	}
	err = r.kube.NetworkingV1().NetworkPolicies(t.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrap(have, "delete", err)
}

func wrap(p *networkingv1.NetworkPolicy, verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s NetworkPolicy %s: %w", verb, p.Name, err)
}
