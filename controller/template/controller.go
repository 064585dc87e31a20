// Package template reconciles SandboxTemplates. It hardens the Pod that a
// template describes (Build), refuses all that is not on the list of what a
// template may say (rules), reports what a template sets aside, and keeps one
// NetworkPolicy per template that shuts its sandboxes off the network.
package template

import (
	"context"

	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	policyinformer "knative.dev/pkg/client/injection/kube/informers/networking/v1/networkpolicy"
	"knative.dev/pkg/controller"

	templateinformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxtemplate"
	templatereconciler "github.com/preheat-dev/preheat/api/client/injection/reconciler/sandbox/v1alpha1/sandboxtemplate"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// NewController returns the controller of SandboxTemplates.
func NewController(ctx context.Context, ceiling Ceiling) *controller.Impl {
	policies := policyinformer.Get(ctx)
	impl := templatereconciler.NewImpl(ctx, &templateReconciler{
		kube: kubeclient.Get(ctx), policies: policies.Lister(), ceiling: ceiling,
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
