package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// idlePods are Pods that are never scheduled, to measure what one write takes.
type idlePods struct {
	pods  typed.PodInterface
	names []string
	next  *atomic.Int64
}

func (c *cluster) makeIdle(ctx context.Context, n int) error {
	c.idle = idlePods{pods: c.kube.CoreV1().Pods(metav1.NamespaceDefault), next: new(atomic.Int64)}
	for range n {
		pod := c.barePod("preheat-bench-idle")
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1alpha1.GroupName + "/bench"}}
		pod, err := c.idle.pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return errors.Join(err, c.idle.remove(ctx))
		}
		c.idle.names = append(c.idle.names, pod.Name)
	}
	return nil
}

func (p idlePods) remove(ctx context.Context) (err error) {
	for _, name := range p.names {
		err = errors.Join(err, p.pods.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}))
	}
	return err
}

// patch changes a label of one of them, of another each time.
func (p idlePods) patch(ctx context.Context) error {
	name := p.names[p.next.Add(1)%int64(len(p.names))]
	change := fmt.Appendf(nil, `{"metadata":{"labels":{"changed":"%d"}}}`, time.Now().UnixNano())
	_, err := p.pods.Patch(ctx, name, types.MergePatchType, change, metav1.PatchOptions{})
	return err
}
