package warmpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	listers "github.com/preheat-dev/preheat/api/client/listers/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
	"github.com/preheat-dev/preheat/controller/template"
	"github.com/preheat-dev/preheat/internal/plan"
)

const (
	// statusEvery is how often the counts in a pool's status are written.
	statusEvery = time.Second
	// retryAfter is the pause after a refused write.
	retryAfter = time.Second
)

type poolReconciler struct {
	kube      kubernetes.Interface
	client    versioned.Interface
	pods      corelisters.PodLister
	claims    listers.SandboxClaimLister
	templates listers.SandboxTemplateLister
	keys      *Keys
	memories  memories
	ledger    *ledger
	metrics   *metrics
	tracer    tracer
	// maxCreating bounds the sandboxes of a pool that warm up at once.
	maxCreating int
	index       *index.Index
	blueprints  *template.Blueprints
}

// ReconcileKind implements the generated Interface. The status is its own to
// write: the generated code would do so after every claim.
func (r *poolReconciler) ReconcileKind(ctx context.Context, pool *v1alpha1.SandboxWarmPool) reconciler.Event {
	before := pool.Status.DeepCopy()
	blueprint, paused := r.blueprint(pool)
	state, actions, err := r.run(ctx, pool, blueprint, paused)
	if state == nil {
		return err
	}
	m := r.memories.of(keyOf(pool))
	report(pool, *state, actions)
	r.announce(ctx, pool, m, actions)
	now := time.Now()
	switch wait := m.wroteStatus.Add(statusEvery).Sub(now); {
	case equality.Semantic.DeepEqual(*before, pool.Status):
	case actions.Quiet && !urgent(before, &pool.Status): // until it wakes
	case wait > 0 && !urgent(before, &pool.Status):
		if at := now.Add(wait); actions.Wake.IsZero() || at.Before(actions.Wake) {
			actions.Wake = at
		}
	default:
		m.wroteStatus = now
		err = errors.Join(err, r.writeStatus(ctx, pool))
	}
	return again(ctx, actions, err, now)
}

func (r *poolReconciler) writeStatus(ctx context.Context, pool *v1alpha1.SandboxWarmPool) error {
	_, err := r.client.SandboxV1alpha1().SandboxWarmPools(pool.Namespace).UpdateStatus(ctx, pool, metav1.UpdateOptions{})
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the newer object is on its way, and brings the pool back
	}
	return fmt.Errorf("write the pool's status: %w", err)
}

// urgent reports whether a status has news other than counts.
func urgent(before, after *v1alpha1.SandboxWarmPoolStatus) bool {
	reason := func(s *v1alpha1.SandboxWarmPoolStatus) string {
		if c := s.GetCondition(v1alpha1.ConditionReady); c != nil && c.IsFalse() {
			return c.Reason
		}
		return ""
	}
	return before.ObservedGeneration != after.ObservedGeneration || reason(before) != reason(after)
}

// ObserveDeletion ends the sandboxes of a pool that is gone: unclaimed ones at
// once, claimed ones with their claims.
func (r *poolReconciler) ObserveDeletion(ctx context.Context, key types.NamespacedName) error {
	pool := &v1alpha1.SandboxWarmPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       v1alpha1.SandboxWarmPoolSpec{Replicas: ptr.To[int32](0)},
	}
	paused := plan.Problem{Reason: v1alpha1.ReasonPoolNotFound}
	state, actions, err := r.run(ctx, pool, nil, paused)
	if state == nil {
		return err
	}
	if len(state.Sandboxes) == 0 {
		r.memories.drop(key)
		r.metrics.forget(ctx, pool)
		return nil
	}
	return again(ctx, actions, err, time.Now())
}

// again asks for the next look at a pool.
func again(ctx context.Context, a plan.Actions, err error, now time.Time) error {
	if err != nil {
		// The work queue's own retries start at milliseconds and would make a
		// hot loop of a refusing API server.
		logging.FromContext(ctx).Warnw("Some of the planned steps failed", "error", err)
		return controller.NewRequeueAfter(retryAfter)
	}
	if a.Wake.IsZero() {
		return nil
	}
	return controller.NewRequeueAfter(max(a.Wake.Sub(now), time.Millisecond))
}

func keyOf(pool *v1alpha1.SandboxWarmPool) types.NamespacedName {
	return types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name}
}

// blueprint returns what the pool's sandboxes are made from, or why they
// cannot be made.
func (r *poolReconciler) blueprint(pool *v1alpha1.SandboxWarmPool) (*template.Blueprint, plan.Problem) {
	name := pool.Spec.SandboxTemplateRef.Name
	t, err := r.templates.SandboxTemplates(pool.Namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil, plan.Problem{Reason: v1alpha1.ReasonTemplateNotFound, Message: "there is no SandboxTemplate " + name}
	}
	if err == nil {
		var b *template.Blueprint
		if b, err = r.blueprints.Of(t); err == nil {
			return b, plan.Problem{}
		}
	}
	return nil, plan.Problem{Reason: v1alpha1.ReasonTemplateInvalid, Message: "SandboxTemplate " + name + ": " + err.Error()}
}

// run looks at a pool, decides and acts. The state is nil when it could not
// look. The error is about the acts.
func (r *poolReconciler) run(ctx context.Context, pool *v1alpha1.SandboxWarmPool, b *template.Blueprint, paused plan.Problem) (*plan.State, plan.Actions, error) {
	o, err := r.observe(ctx, pool, paused)
	if err != nil {
		return nil, plan.Actions{}, err
	}
	if b != nil {
		o.revision = b.Revision
		o.key = r.keys.current(pool.Namespace)
	}
	state := o.state()
	r.learn(ctx, o, state)
	actions := plan.Plan(state, o.now)
	o.memory.backoff, o.memory.size = actions.Backoff, actions.Memory
	r.metrics.pool(ctx, pool, state, actions)
	e := &effects{reconciler: r, pool: pool, blueprint: b, observation: o}
	if actions.Create > 0 {
		e.traces, o.memory.traces = o.memory.traces, nil
	}
	err = e.carryOut(ctx, actions)
	if at := o.memory.wake(); !at.IsZero() && (actions.Wake.IsZero() || at.Before(actions.Wake)) {
		actions.Wake = at
	}
	return &state, actions, err
}

// observe reads the caches, and asks the API server where they do not suffice.
func (r *poolReconciler) observe(ctx context.Context, pool *v1alpha1.SandboxWarmPool, paused plan.Problem) (*observation, error) {
	key := keyOf(pool)
	// What has passed is taken first: it is then in the caches already.
	gone := r.ledger.take(key)
	pods, err := r.index.PodsOfPool(pool.Namespace, pool.Name)
	if err != nil {
		return nil, err
	}
	claims, err := r.index.ActiveClaimsOfPool(pool.Namespace, pool.Name)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	m := r.memories.of(key)
	gone.first = r.ledger.versions(claims)
	m.refresh(pods, claims, gone, now)
	m.resume(pool, now)
	return &observation{
		pool: pool, pods: pods, claims: claims, memory: m, paused: paused, now: now, maxCreating: r.maxCreating,
		over: func(pod *corev1.Pod) bool { return r.claimEnded(ctx, m, pod, now) },
	}, nil
}

// claimEnded reports whether the claim of a claimed sandbox has ended (I4), and
// never so by mistake (I3). Pods and claims come by two watches without a common
// order: that a claim is not in the cache, or that another one of its name is,
// proves nothing.
func (r *poolReconciler) claimEnded(ctx context.Context, m *memory, pod *corev1.Pod, now time.Time) bool {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelClaim]}
	uid := types.UID(pod.Labels[v1alpha1.LabelClaimUID])
	theirs := func(c *v1alpha1.SandboxClaim) bool { return uid == "" || uid == c.UID }
	over := func(c *v1alpha1.SandboxClaim) bool { return c.Status.FinishedAt != nil || c.DeletionTimestamp != nil }
	c, err := r.claims.SandboxClaims(pod.Namespace).Get(name.Name)
	if err == nil && theirs(c) {
		delete(m.orphans, pod.Name)
		return over(c)
	}
	if r.ledger.hasEnded(name, uid) {
		delete(m.orphans, pod.Name)
		return true
	}
	first, seen := m.orphans[pod.Name]
	if !seen {
		m.orphans[pod.Name], first = now, now
	}
	if now.Sub(first) < orphanGrace {
		return false
	}
	// The API server's own answer is no older than the sandbox's label.
	c, err = r.client.SandboxV1alpha1().SandboxClaims(pod.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && (!theirs(c) || over(c)):
		delete(m.orphans, pod.Name)
		r.ledger.foundEnded(name, uid, now)
		return true
	}
	m.orphans[pod.Name] = now // look again later
	return false
}

// learn measures how long sandboxes take to become warm.
func (r *poolReconciler) learn(ctx context.Context, o *observation, s plan.State) {
	for _, x := range s.Sandboxes {
		if x.Phase != plan.Warm {
			continue
		}
		o.memory.warm[x.Name] = true
		if born, ok := o.memory.born[x.Name]; ok {
			delete(o.memory.born, x.Name)
			r.tracer.refill(ctx, o.pool, x.Name, born, nil)
			took := o.now.Sub(born.start)
			o.memory.meter.Refilled(took)
			r.metrics.refilled(ctx, o.pool, took)
		}
	}
}
