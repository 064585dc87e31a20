// Package warmpool reconciles SandboxWarmPools: it keeps the wanted number of
// sandbox Pods warm, replaces what failed, grew old or follows an old
// template, binds sandboxes to the claims that wait for one, and destroys the
// sandbox of a claim that has ended.
//
// The decisions are plan.Plan's. This package turns what the caches show into
// the plan's state, corrected by what it knows of its own writes, and carries
// the actions out: it takes a sandbox only by the lock on its label, and
// deletes only what it has taken or what no claim holds any more.
package warmpool

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/filtered"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	client "github.com/preheat-dev/preheat/api/client/injection/client"
	claiminformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxclaim"
	templateinformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxtemplate"
	poolinformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxwarmpool"
	poolreconciler "github.com/preheat-dev/preheat/api/client/injection/reconciler/sandbox/v1alpha1/sandboxwarmpool"
	listers "github.com/preheat-dev/preheat/api/client/listers/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
	"github.com/preheat-dev/preheat/controller/template"
	"github.com/preheat-dev/preheat/controller/watch"
)

// NewController returns the controller of SandboxWarmPools, of which each has
// at most maxCreating sandboxes warming up at once, made from the blueprints.
// Their tokens are made from keys.
func NewController(ctx context.Context, x *index.Index, keys *Keys, maxCreating int, blueprints *template.Blueprints) *controller.Impl {
	pods := podinformer.Get(ctx, index.PodSelector)
	m, err := newMetrics()
	if err != nil {
		logging.FromContext(ctx).Fatalw("Failed to make the metrics", "error", err)
	}
	r := &poolReconciler{
		kube: kubeclient.Get(ctx), client: client.Get(ctx), pods: pods.Lister(),
		claims: claiminformer.Get(ctx).Lister(), templates: templateinformer.Get(ctx).Lister(),
		keys: keys, ledger: newLedger(), metrics: m, tracer: newTracer(), maxCreating: maxCreating, index: x, blueprints: blueprints,
	}
	impl := poolreconciler.NewImpl(ctx, r, func(impl *controller.Impl) controller.Options {
		return controller.Options{
			SkipStatusUpdates: true,
			// The pools that exist are looked at by themselves. Pods may be
			// left of pools that do not.
			PromoteFunc: func(reconciler.Bucket) { r.enqueuePods(impl) },
			// The next leader changes what this memory is about.
			DemoteFunc: func(reconciler.Bucket) { r.memories.dropAll() },
		}
	})
	handle(ctx, impl, r, pods.Informer())
	return impl
}

func handle(ctx context.Context, impl *controller.Impl, r *poolReconciler, pods cache.SharedIndexInformer) {
	watch.Add(poolinformer.Get(ctx).Informer(), controller.HandleAll(impl.Enqueue))
	watch.Add(pods, cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { enqueuePod(impl, obj) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*corev1.Pod), after.(*corev1.Pod)
			if was.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm && is.Labels[v1alpha1.LabelState] == v1alpha1.StateClaimed {
				r.ledger.sandboxClaimed(is)
			}
			enqueuePod(impl, after)
		},
		DeleteFunc: func(obj any) {
			if pod, ok := watch.Last(obj).(*corev1.Pod); ok {
				r.ledger.sandboxGone(pod)
				enqueuePod(impl, pod)
			}
		},
	})
	enqueueClaim := func(obj any) {
		if c, ok := watch.Last(obj).(*v1alpha1.SandboxClaim); ok {
			impl.EnqueueKey(types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.WarmPoolRef.Name})
		}
	}
	watch.Add(claiminformer.Get(ctx).Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if c, ok := obj.(*v1alpha1.SandboxClaim); ok {
				r.ledger.claimSeen(c)
				enqueueClaim(c)
			}
		},
		UpdateFunc: func(before, after any) {
			// After a lost watch it can be another claim of the same name.
			if was, is := before.(*v1alpha1.SandboxClaim), after.(*v1alpha1.SandboxClaim); was.UID != is.UID {
				r.ledger.claimEnded(was, time.Now())
				r.ledger.claimSeen(is)
			}
			enqueueClaim(after)
		},
		DeleteFunc: func(obj any) {
			if c, ok := watch.Last(obj).(*v1alpha1.SandboxClaim); ok {
				r.ledger.claimEnded(c, time.Now())
				enqueueClaim(c)
				r.enqueueHeld(impl, c)
			}
		},
	})
	pools := poolinformer.Get(ctx).Lister()
	// Sandboxes with another key than the current one are replaced.
	watch.Add(r.keys.informer, controller.HandleAll(func(obj any) {
		if s, ok := watch.Last(obj).(*corev1.Secret); ok {
			r.enqueueNamespace(ctx, impl, pools, s.Namespace)
		}
	}))
	watch.Add(templateinformer.Get(ctx).Informer(), controller.HandleAll(func(obj any) {
		t, ok := watch.Last(obj).(*v1alpha1.SandboxTemplate)
		if !ok {
			return
		}
		all, err := pools.SandboxWarmPools(t.Namespace).List(labels.Everything())
		if err != nil {
			logging.FromContext(ctx).Errorw("Failed to list the pools of a template", "error", err)
			return
		}
		for _, p := range all {
			if p.Spec.SandboxTemplateRef.Name == t.Name {
				impl.Enqueue(p)
			}
		}
	}))
}

func (r *poolReconciler) enqueueNamespace(ctx context.Context, impl *controller.Impl, pools listers.SandboxWarmPoolLister, namespace string) {
	all, err := pools.SandboxWarmPools(namespace).List(labels.Everything())
	if err != nil {
		logging.FromContext(ctx).Errorw("Failed to list the pools of a namespace", "error", err)
		return
	}
	for _, p := range all {
		impl.Enqueue(p)
	}
}

func enqueuePod(impl *controller.Impl, obj any) {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Labels[v1alpha1.LabelPool] != "" {
		impl.EnqueueKey(poolOf(pod))
	}
}

// enqueueHeld brings the pool of a claim's sandbox back. It is the one that the
// claim names, unless its claimant got that wrong.
func (r *poolReconciler) enqueueHeld(impl *controller.Impl, c *v1alpha1.SandboxClaim) {
	held, err := r.index.PodsOfClaim(c.Namespace, c.Name)
	if err != nil {
		return // a cache that is there does not fail
	}
	for _, pod := range held {
		enqueuePod(impl, pod)
	}
}

func (r *poolReconciler) enqueuePods(impl *controller.Impl) {
	all, err := r.pods.List(labels.Everything())
	if err != nil {
		return // a cache that is there does not fail
	}
	for _, pod := range all {
		enqueuePod(impl, pod)
	}
}
