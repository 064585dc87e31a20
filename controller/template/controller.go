// Package template reconciles SandboxTemplates. It hardens the Pod that a
// template describes (Build), refuses all that is not on the list of what a
// template may say (rules), reports what a template sets aside, and keeps one
// NetworkPolicy per template that shuts its sandboxes off the network, for as
// long as the template or a sandbox of it exists.
package template

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/filtered"
	policyinformer "knative.dev/pkg/client/injection/kube/informers/networking/v1/networkpolicy"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	templateinformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxtemplate"
	templatereconciler "github.com/preheat-dev/preheat/api/client/injection/reconciler/sandbox/v1alpha1/sandboxtemplate"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
	"github.com/preheat-dev/preheat/controller/watch"
)

// NewController returns the controller of SandboxTemplates.
func NewController(ctx context.Context, x *index.Index, blueprints *Blueprints) *controller.Impl {
	policies, templates := policyinformer.Get(ctx), templateinformer.Get(ctx)
	r := &templateReconciler{
		kube: kubeclient.Get(ctx), policies: policies.Lister(), index: x, blueprints: blueprints,
		unused:    map[types.NamespacedName]time.Time{},
		isolation: &isolation{pods: podinformer.Get(ctx, index.PodSelector).Lister(), settled: settledAfter, found: map[types.NamespacedName]finding{}},
	}
	enqueuePolicy := func(impl *controller.Impl, p *networkingv1.NetworkPolicy) {
		if template, ok := templateOf(p); ok {
			impl.EnqueueKey(template)
		}
	}
	impl := templatereconciler.NewImpl(ctx, r, func(impl *controller.Impl) controller.Options {
		return controller.Options{
			// The templates that exist are looked at by themselves. Policies may
			// be left of templates that do not.
			PromoteFunc: func(reconciler.Bucket) {
				all, err := policies.Lister().List(labels.Everything())
				if err != nil {
					logging.FromContext(ctx).Errorw("Failed to list the NetworkPolicies", "error", err)
				}
				for _, p := range all {
					enqueuePolicy(impl, p)
				}
			},
			DemoteFunc: func(reconciler.Bucket) { r.forgetUnused() },
		}
	})
	watch.Add(templates.Informer(), controller.HandleAll(impl.Enqueue))
	watch.Add(templates.Informer(), cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if t, ok := watch.Last(obj).(*v1alpha1.SandboxTemplate); ok {
			blueprints.forget(types.NamespacedName{Namespace: t.Namespace, Name: t.Name})
		}
	}})
	watch.Add(policies.Informer(), controller.HandleAll(func(obj any) {
		if p, ok := watch.Last(obj).(*networkingv1.NetworkPolicy); ok {
			enqueuePolicy(impl, p)
		}
	}))
	watch.Add(podinformer.Get(ctx, index.PodSelector).Informer(), cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		pod, ok := watch.Last(obj).(*corev1.Pod)
		if !ok || pod.Labels[v1alpha1.LabelTemplate] == "" {
			return
		}
		name := pod.Labels[v1alpha1.LabelTemplate]
		if _, err := templates.Lister().SandboxTemplates(pod.Namespace).Get(name); apierrors.IsNotFound(err) {
			impl.EnqueueKey(types.NamespacedName{Namespace: pod.Namespace, Name: name})
		}
	}})
	return impl
}
