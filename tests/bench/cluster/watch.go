package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// pods are the sandboxes, as a watch shows them: to ask for them again and again
// would take the processors from what is measured.
type pods struct {
	informer cache.SharedIndexInformer
	changed  chan struct{}
}

// watchPods follows the sandboxes until ctx ends.
func watchPods(ctx context.Context, kube kubernetes.Interface) (*pods, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithNamespace(sandboxes),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = v1alpha1.LabelPool }))
	p := &pods{informer: factory.Core().V1().Pods().Informer(), changed: make(chan struct{}, 1)}
	tell := func(any) {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	if _, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(any, any) { tell(nil) }, DeleteFunc: tell}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), p.informer.HasSynced) {
		return nil, errors.Join(errors.New("the sandboxes cannot be watched"), context.Cause(ctx))
	}
	return p, nil
}

// count is how many sandboxes there are, and how many of them can be claimed.
func (p *pods) count() (all, warm int) {
	for _, obj := range p.informer.GetStore().List() {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			continue
		}
		all++
		if ready(pod) && pod.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm && pod.DeletionTimestamp == nil {
			warm++
		}
	}
	return all, warm
}

// until waits until the sandboxes are as they should be.
func (p *pods) until(ctx context.Context, what string, holds func(all, warm int) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !holds(p.count()) {
		select {
		case <-p.changed:
		case <-ctx.Done():
			all, warm := p.count()
			return fmt.Errorf("waited in vain until %s: %d of %d sandboxes are warm: %w", what, warm, all, ctx.Err())
		}
	}
	return nil
}
