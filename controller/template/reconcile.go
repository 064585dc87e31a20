package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
)

// unusedFor is how long a template has to be gone, and to have no Pods, before
// its NetworkPolicy is deleted: longer than the creation of a Pod that had begun
// before takes to appear in the cache.
const unusedFor = 15 * time.Second

type templateReconciler struct {
	kube       kubernetes.Interface
	policies   networkinglisters.NetworkPolicyLister
	index      *index.Index
	blueprints *Blueprints
	// isolation finds out whether policies are enforced.
	isolation *isolation

	mu sync.Mutex
	// unused holds since when templates are gone that have no Pods.
	unused map[types.NamespacedName]time.Time
}

// ReconcileKind implements the generated Interface.
func (r *templateReconciler) ReconcileKind(ctx context.Context, t *v1alpha1.SandboxTemplate) reconciler.Event {
	key := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	r.exists(key)
	conditions := t.GetConditionSet().Manage(t.GetStatus())
	b, err := r.blueprints.Of(t)
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
		_ = conditions.ClearCondition(v1alpha1.ConditionNetworkIsolated) // it fails for those that Ready depends on
		return r.deletePolicy(ctx, key)
	}
	if err := r.applyPolicy(ctx, t); err != nil {
		reason := v1alpha1.ReasonCreateFailed
		var foreign *foreignPolicyError
		if errors.As(err, &foreign) {
			reason = v1alpha1.ReasonForeignNetworkPolicy
		}
		conditions.MarkFalse(v1alpha1.ConditionNetworkPolicy, reason, "%s", err)
		return err
	}
	conditions.MarkTrue(v1alpha1.ConditionNetworkPolicy)
	isolated, again := r.isolation.check(ctx, t, time.Now())
	conditions.SetCondition(isolated)
	return controller.NewRequeueAfter(time.Until(again))
}

// ObserveDeletion keeps the NetworkPolicy of a template that is gone for as long
// as there are Pods of it: their programs go on, and a template of the same name
// may come, as with kubectl replace --force.
func (r *templateReconciler) ObserveDeletion(ctx context.Context, key types.NamespacedName) error {
	r.isolation.forget(key)
	pods, err := r.index.PodsOfTemplate(key.Namespace, key.Name)
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		r.exists(key)
		return nil // the end of each Pod brings the template back
	}
	if wait := time.Until(r.unusedSince(key).Add(unusedFor)); wait > 0 {
		return controller.NewRequeueAfter(wait)
	}
	if err := r.deletePolicy(ctx, key); err != nil {
		return err
	}
	r.exists(key)
	return nil
}

// exists forgets since when a template has been unused.
func (r *templateReconciler) exists(template types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unused, template)
}

// forgetUnused forgets it of all templates: another controller leads now.
func (r *templateReconciler) forgetUnused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.unused)
}

// unusedSince returns when a template was first found to be unused: now, unless
// it has been before.
func (r *templateReconciler) unusedSince(template types.NamespacedName) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, known := r.unused[template]
	if !known {
		since = time.Now()
		r.unused[template] = since
	}
	return since
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

// applyPolicy sees that the template's NetworkPolicy is in place.
func (r *templateReconciler) applyPolicy(ctx context.Context, t *v1alpha1.SandboxTemplate) error {
	want := networkPolicy(t)
	client := r.kube.NetworkingV1().NetworkPolicies(t.Namespace)
	have, err := r.policies.NetworkPolicies(t.Namespace).Get(want.Name)
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return wrap(want, "create", err)
		}
		// The cache is behind. Only the API server knows whose policy this is.
		have, err = client.Get(ctx, want.Name, metav1.GetOptions{})
	}
	if err != nil {
		return wrap(want, "get", err)
	}
	if !managed(have, t.Name) {
		return &foreignPolicyError{name: want.Name}
	}
	owners := slices.DeleteFunc(slices.Clone(have.OwnerReferences), ownedByTemplate)
	if equality.Semantic.DeepEqual(have.Spec, want.Spec) && len(owners) == len(have.OwnerReferences) {
		return nil
	}
	have = have.DeepCopy()
	have.Spec, have.OwnerReferences = want.Spec, owners
	_, err = client.Update(ctx, have, metav1.UpdateOptions{})
	return wrap(want, "update", err)
}

// foreignPolicyError says that somebody else made a NetworkPolicy of the name
// that the template's would have.
type foreignPolicyError struct{ name string }

// Error implements error.
func (e *foreignPolicyError) Error() string {
	return fmt.Sprintf("NetworkPolicy %s exists and is not the controller's: it has no label %s of this template", e.name, v1alpha1.LabelTemplate)
}

// deletePolicy deletes the NetworkPolicy of a template, unless it is somebody
// else's.
func (r *templateReconciler) deletePolicy(ctx context.Context, template types.NamespacedName) error {
	have, err := r.policies.NetworkPolicies(template.Namespace).Get(NetworkPolicyName(template.Name))
	if apierrors.IsNotFound(err) || err == nil && !managed(have, template.Name) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the NetworkPolicy of template %s: %w", template.Name, err)
	}
	err = r.kube.NetworkingV1().NetworkPolicies(have.Namespace).Delete(ctx, have.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
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
