// Package template reconciles SandboxTemplates. It hardens the Pod that a
// template describes (Build), refuses what would weaken a sandbox without
// saying so, reports what a template sets aside, and keeps one NetworkPolicy
// per template that shuts its sandboxes off the network.
package template

import (
	"context"

	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	policyinformer "knative.dev/pkg/client/injection/kube/informers/networking/v1/networkpolicy"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"

	templateinformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxtemplate"
	templatereconciler "github.com/preheat-dev/preheat/api/client/injection/reconciler/sandbox/v1alpha1/sandboxtemplate"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// NewController returns the controller of SandboxTemplates.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	policies := policyinformer.Get(ctx)
	impl := templatereconciler.NewImpl(ctx, &templateReconciler{
		kube: kubeclient.Get(ctx), policies: policies.Lister(),
	})
	add(templateinformer.Get(ctx).Informer(), controller.HandleAll(impl.Enqueue))
	add(policies.Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: controller.FilterController(&v1alpha1.SandboxTemplate{}),
		Handler:    controller.HandleAll(impl.EnqueueControllerOf),
	})
	return impl
}

// add registers a handler. It can only fail on a stopped informer, and then
// the process is about to end.
func add(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	_, _ = informer.AddEventHandler(handler)
}
