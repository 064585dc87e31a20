// Package claim reconciles SandboxClaims: it says in a claim's status which
// sandbox it has or why it has none, and ends a claim whose time is over. To
// bind sandboxes and to destroy them is the business of package warmpool.
package claim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/filtered"
	"knative.dev/pkg/controller"

	client "github.com/preheat-dev/preheat/api/client/injection/client"
	claiminformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxclaim"
	poolinformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxwarmpool"
	claimreconciler "github.com/preheat-dev/preheat/api/client/injection/reconciler/sandbox/v1alpha1/sandboxclaim"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
	"github.com/preheat-dev/preheat/controller/watch"
)

// NewController returns the controller of SandboxClaims.
func NewController(ctx context.Context, x *index.Index) *controller.Impl {
	pods := podinformer.Get(ctx, index.PodSelector)
	impl := claimreconciler.NewImpl(ctx, &claimReconciler{
		client: client.Get(ctx), index: x, pools: poolinformer.Get(ctx).Lister(),
	}, func(*controller.Impl) controller.Options { return controller.Options{SkipStatusUpdates: true} })
	watch.Add(claiminformer.Get(ctx).Informer(), controller.HandleAll(impl.Enqueue))
	watch.Add(pods.Informer(), controller.HandleAll(func(obj any) {
		if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tomb.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok && pod.Labels[v1alpha1.LabelClaim] != "" {
			impl.EnqueueKey(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelClaim]})
		}
	}))
	return impl
}
