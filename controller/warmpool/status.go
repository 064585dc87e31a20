package warmpool

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/plan"
)

// Event reasons beside the reasons of conditions.
const (
	eventRecovered = "Recovered"
	eventResized   = "Resized"
)

// tally counts a pool's sandboxes.
type tally struct{ warm, updated, warming, claimed int }

func count(s plan.State) tally {
	var t tally
	for _, x := range s.Sandboxes {
		switch {
		case x.Phase == plan.Claimed:
			t.claimed++
		case x.Ending:
		case x.Phase == plan.Warm:
			t.warm++
			if x.Revision == s.Revision {
				t.updated++
			}
		case x.Phase == plan.Warming:
			t.warming++
		}
	}
	return t
}

// report writes what was seen and decided into the pool's status.
func report(pool *v1alpha1.SandboxWarmPool, s plan.State, a plan.Actions) {
	t := count(s)
	st := &pool.Status
	st.ObservedGeneration = pool.Generation
	st.ReadyReplicas, st.UpdatedReplicas = int32(t.warm), int32(t.updated)
	st.WarmingReplicas, st.ClaimedReplicas = int32(t.warming), int32(t.claimed)
	st.Replicas = st.ReadyReplicas + st.WarmingReplicas
	st.DesiredReplicas, st.WaitingClaims = int32(a.Desired), int32(len(s.Waiting)-len(a.Bind))
	st.Selector = labels.SelectorFromSet(labels.Set{
		v1alpha1.LabelPool: pool.Name, v1alpha1.LabelState: v1alpha1.StateWarm,
	}).String()

	c := pool.GetConditionSet().Manage(pool.GetStatus())
	switch a.Problem.Reason {
	case v1alpha1.ReasonTemplateNotFound, v1alpha1.ReasonTemplateInvalid:
		c.MarkFalse(v1alpha1.ConditionTemplateReady, a.Problem.Reason, "%s", a.Problem.Message)
	default:
		c.MarkTrue(v1alpha1.ConditionTemplateReady)
	}
	switch {
	case a.Problem != plan.Problem{}:
		c.MarkFalse(v1alpha1.ConditionFilled, a.Problem.Reason, "%s", a.Problem.Message)
	case t.warm >= a.Desired:
		c.MarkTrue(v1alpha1.ConditionFilled)
	default:
		c.MarkUnknown(v1alpha1.ConditionFilled, v1alpha1.ReasonWarming, "%d of %d sandboxes are warm", t.warm, a.Desired)
	}
}

// announce records an event when the pool's problem changes, and when its
// measured size does.
func (r *poolReconciler) announce(ctx context.Context, pool *v1alpha1.SandboxWarmPool, m *memory, a plan.Actions) {
	recorder := controller.GetEventRecorder(ctx)
	switch old := m.problem; {
	case old.Reason == a.Problem.Reason:
	case a.Problem.Reason == "":
		recorder.Eventf(pool, corev1.EventTypeNormal, eventRecovered, "No longer: %s", old.Reason)
	default:
		recorder.Eventf(pool, corev1.EventTypeWarning, a.Problem.Reason, "Sandboxes cannot be made warm: %s", a.Problem.Message)
		logging.FromContext(ctx).Infow("Sandboxes cannot be made warm", "reason", a.Problem.Reason, "message", a.Problem.Message)
	}
	m.problem = a.Problem
	if pool.Spec.Autoscaling != nil && m.desired != a.Desired {
		recorder.Eventf(pool, corev1.EventTypeNormal, eventResized, "The size is now %d warm sandboxes: %.2f claims per second, %s to warm one",
			a.Desired, m.meter.Rate(time.Now()), m.meter.Refill())
	}
	m.desired = a.Desired
}
