package claim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	listers "github.com/preheat-dev/preheat/api/client/listers/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
	"github.com/preheat-dev/preheat/controller/warmpool"
)

// eventBound is the event of a claim that the controller has bound.
const eventBound = "Bound"

// conflictPause is when a claim is looked at again after a conflict. Usually a
// newer version of it is on its way and comes first, but nothing promises that.
const conflictPause = time.Second

type claimReconciler struct {
	client versioned.Interface
	index  *index.Index
	pools  listers.SandboxWarmPoolLister
}

// ReconcileKind implements the generated Interface. The status is its own to
// write: the generated code would give one to claims that are over in no time.
func (r *claimReconciler) ReconcileKind(ctx context.Context, c *v1alpha1.SandboxClaim) reconciler.Event {
	pod, err := r.sandbox(c)
	if err != nil {
		return err
	}
	_, err = r.pools.SandboxWarmPools(c.Namespace).Get(c.Spec.WarmPoolRef.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get the pool of claim %s: %w", c.Name, err)
	}
	now := time.Now()
	s := plan(c, pod, err == nil, now)
	if s.remove {
		return r.remove(ctx, c)
	}
	before := c.Status.DeepCopy()
	apply(ctx, c, s, now)
	if err := r.writeStatus(ctx, c, before); err != nil {
		return err
	}
	if s.finish {
		// The status brings the claim back, to be removed in time.
		return nil
	}
	if s.wake.IsZero() {
		return nil
	}
	return controller.NewRequeueAfter(max(s.wake.Sub(now), time.Millisecond))
}

func (r *claimReconciler) writeStatus(ctx context.Context, c *v1alpha1.SandboxClaim, before *v1alpha1.SandboxClaimStatus) error {
	if equality.Semantic.DeepEqual(*before, c.Status) {
		return nil
	}
	_, err := r.client.SandboxV1alpha1().SandboxClaims(c.Namespace).UpdateStatus(ctx, c, metav1.UpdateOptions{})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return controller.NewRequeueAfter(conflictPause)
	}
	return fmt.Errorf("write the status of claim %s: %w", c.Name, err)
}

// sandbox finds the claim's Pod, or nil.
func (r *claimReconciler) sandbox(c *v1alpha1.SandboxClaim) (*corev1.Pod, error) {
	pods, err := r.index.PodsOfClaim(c.Namespace, c.Name)
	if err != nil {
		return nil, fmt.Errorf("find the sandbox of claim %s: %w", c.Name, err)
	}
	for _, pod := range pods {
		if warmpool.Holds(c, pod) {
			return pod, nil
		}
	}
	return nil, nil
}

func (r *claimReconciler) remove(ctx context.Context, c *v1alpha1.SandboxClaim) error {
	err := r.client.SandboxV1alpha1().SandboxClaims(c.Namespace).Delete(ctx, c.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(c.UID))})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return controller.NewRequeueAfter(conflictPause)
	}
	return fmt.Errorf("delete claim %s: %w", c.Name, err)
}

// apply writes a step into the claim's status, and tells of what matters.
func apply(ctx context.Context, c *v1alpha1.SandboxClaim, s step, now time.Time) {
	if s.ready == "" {
		return
	}
	c.Status.ObservedGeneration = c.Generation
	before := c.Status.GetCondition(v1alpha1.ConditionReady)
	c.GetConditionSet().Manage(c.GetStatus()).SetCondition(apis.Condition{
		Type: v1alpha1.ConditionReady, Status: s.ready, Reason: s.reason, Message: s.message,
	})
	if s.sandbox != nil {
		if c.Status.Sandbox == nil && c.Spec.Binding == v1alpha1.BindingController {
			controller.GetEventRecorder(ctx).Eventf(c, corev1.EventTypeNormal, eventBound, "Bound to sandbox %s", s.sandbox.Name)
		}
		c.Status.Sandbox = s.sandbox
	}
	if s.finish {
		c.Status.FinishedAt = &metav1.Time{Time: now}
	}
	if s.ready == corev1.ConditionFalse && (before == nil || before.Reason != s.reason) {
		controller.GetEventRecorder(ctx).Event(c, corev1.EventTypeWarning, s.reason, s.message)
	}
}
