// Package index looks Pods and claims up in the informers' caches by what the
// controllers know of them, at a cost that does not grow with the cache.
package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/filtered"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// PodSelector selects the Pods that the controllers look at. The context of New
// needs it as a selector of the filtered informers.
const PodSelector = v1alpha1.LabelPool

// byTemplate is the index of Pods by the template that they were made from.
const byTemplate = "template"

// Index answers from the caches. Its answers must not be changed.
type Index struct {
	pods cache.Indexer
}

// New adds the indices to the informers of ctx. It can be called once, before
// these start.
func New(ctx context.Context) (*Index, error) {
	pods := podinformer.Get(ctx, PodSelector).Informer()
	err := pods.AddIndexers(cache.Indexers{byTemplate: byLabel(v1alpha1.LabelTemplate)})
	if err != nil {
		return nil, fmt.Errorf("index the Pods: %w", err)
	}
	return &Index{pods: pods.GetIndexer()}, nil
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

// PodsOfTemplate returns the Pods that were made from a template.
func (x *Index) PodsOfTemplate(namespace, name string) ([]*corev1.Pod, error) {
	return find[*corev1.Pod](x.pods, byTemplate, key(namespace, name))
}

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
