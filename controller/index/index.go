// Package index looks Pods and claims up in the informers' caches by what the
// controllers know of them, at a cost that does not grow with the cache.
package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/filtered"

	claiminformer "github.com/preheat-dev/preheat/api/client/injection/informers/sandbox/v1alpha1/sandboxclaim"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// PodSelector selects the Pods that the controllers look at. The context of New
// needs it as a selector of the filtered informers.
const PodSelector = v1alpha1.LabelPool

// The indices.
const (
	byPool     = "pool"
	byTemplate = "template"
	byClaim    = "claim"
	records    = "records"
)

// Index answers from the caches. Its answers must not be changed.
type Index struct {
	pods, claims cache.Indexer
}

// New adds the indices to the informers of ctx. It can be called once, before
// these start.
func New(ctx context.Context) (*Index, error) {
	pods := podinformer.Get(ctx, PodSelector).Informer()
	if err := pods.AddIndexers(ofPods()); err != nil {
		return nil, fmt.Errorf("index the Pods: %w", err)
	}
	claims := claiminformer.Get(ctx).Informer()
	if err := claims.AddIndexers(ofClaims()); err != nil {
		return nil, fmt.Errorf("index the claims: %w", err)
	}
	return &Index{pods: pods.GetIndexer(), claims: claims.GetIndexer()}, nil
}

func ofPods() cache.Indexers {
	return cache.Indexers{
		byPool: byLabel(v1alpha1.LabelPool), byTemplate: byLabel(v1alpha1.LabelTemplate), byClaim: byLabel(v1alpha1.LabelClaim),
	}
}

func ofClaims() cache.Indexers { return cache.Indexers{byPool: poolOf, records: recordsOf} }

// poolOf indexes claims that have not finished by their pool.
func poolOf(obj any) ([]string, error) {
	c, ok := obj.(*v1alpha1.SandboxClaim)
	if !ok || c.Status.FinishedAt != nil {
		return nil, nil
	}
	return []string{key(c.Namespace, c.Spec.WarmPoolRef.Name)}, nil
}

// IsRecord reports whether c is the record of an event: the claim of one, which
// has finished.
func IsRecord(c *v1alpha1.SandboxClaim) bool {
	_, event := c.Annotations[v1alpha1.AnnotationBegun]
	return event && c.Status.FinishedAt != nil
}

// recordsOf indexes the records of events by their namespace.
func recordsOf(obj any) ([]string, error) {
	c, ok := obj.(*v1alpha1.SandboxClaim)
	if !ok || !IsRecord(c) {
		return nil, nil
	}
	return []string{c.Namespace}, nil
}

// byLabel indexes Pods by their namespace and the value of a label.
func byLabel(label string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Labels[label] == "" {
			return nil, nil
		}
		return []string{key(pod.Namespace, pod.Labels[label])}, nil
	}
}

func key(namespace, name string) string { return namespace + "/" + name }

// PodsOfPool returns the Pods that a pool has made.
func (x *Index) PodsOfPool(namespace, name string) ([]*corev1.Pod, error) {
	return find[*corev1.Pod](x.pods, byPool, key(namespace, name))
}

// PodsOfClaim returns the Pods that a claim of this name holds. Earlier claims
// of the name may have had some of them: not every Pod bears its claim's UID.
func (x *Index) PodsOfClaim(namespace, name string) ([]*corev1.Pod, error) {
	return find[*corev1.Pod](x.pods, byClaim, key(namespace, name))
}

// ActiveClaimsOfPool returns the claims for sandboxes of a pool that have not
// finished.
func (x *Index) ActiveClaimsOfPool(namespace, name string) ([]*v1alpha1.SandboxClaim, error) {
	return find[*v1alpha1.SandboxClaim](x.claims, byPool, key(namespace, name))
}

// PodsOfTemplate returns the Pods that were made from a template.
func (x *Index) PodsOfTemplate(namespace, name string) ([]*corev1.Pod, error) {
	return find[*corev1.Pod](x.pods, byTemplate, key(namespace, name))
}

// Records returns the records of events in a namespace.
func (x *Index) Records(namespace string) ([]*v1alpha1.SandboxClaim, error) {
	return find[*v1alpha1.SandboxClaim](x.claims, records, namespace)
}

// NamespacesWithRecords lists the namespaces in which there are records.
func (x *Index) NamespacesWithRecords() []string { return x.claims.ListIndexFuncValues(records) }

func find[T any](from cache.Indexer, index, value string) ([]T, error) {
	objects, err := from.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("look up %s %s: %w", index, value, err)
	}
	found := make([]T, 0, len(objects))
	for _, obj := range objects {
		if x, ok := obj.(T); ok {
			found = append(found, x)
		}
	}
	return found, nil
}
