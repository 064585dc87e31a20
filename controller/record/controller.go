// Package record bounds what the finished claims of events take up. Such a claim
// is the record of an event for its TTL: a later delivery of the event gets the
// recorded answer. Beyond the limits of a namespace the oldest answers go first,
// and are marked, so that a later delivery learns of it; then the oldest records
// go, whose events would run again.
package record

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	client "github.com/preheat-dev/preheat/api/client/injection/client"
	claiminformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxclaim"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
	"github.com/preheat-dev/preheat/controller/watch"
)

// queue names the work queue, and with it the lease.
const queue = "records"

// NewController returns the controller of events' records. Its keys are
// namespaces.
func NewController(ctx context.Context, x *index.Index, limits Limits) (*controller.Impl, error) {
	m, err := newMetrics()
	if err != nil {
		return nil, err
	}
	r := &recordReconciler{
		client: client.Get(ctx).SandboxV1alpha1(), index: x, limits: limits, metrics: m,
		namespaces: map[string]*namespace{},
	}
	impl := controller.NewContext(ctx, r, controller.ControllerOptions{
		WorkQueueName: queue, Logger: logging.FromContext(ctx).Named("records"), Concurrency: 1,
	})
	r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		for _, namespace := range x.NamespacesWithRecords() {
			enqueue(b, keyOf(namespace))
		}
		return nil
	}
	enqueue := func(obj any) {
		if c, ok := watch.Last(obj).(*v1alpha1.SandboxClaim); ok && index.IsRecord(c) {
			impl.EnqueueKey(keyOf(c.Namespace))
		}
	}
	_, err = claiminformer.Get(ctx).Informer().AddEventHandler(controller.HandleAll(enqueue))
	if err != nil {
		return nil, fmt.Errorf("watch the claims: %w", err)
	}
	return impl, nil
}

// keyOf is the key of a namespace in the work queue.
func keyOf(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: queue}
}
