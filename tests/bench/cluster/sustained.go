package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/template"
	"github.com/preheat-dev/preheat/tests/bench/table"
)

// clients is how many run programs, or make Pods, at once and again and again.
const clients = 8

// parts are the slices of the sustained measurements, so that all see the same
// machine.
const parts = 2

// sustained measures how many executions there are in a second when there are
// always more, beside how many Pods the cluster makes, starts and deletes in
// between: bare ones of the same image, and ones that are just like sandboxes.
// Each part takes the pool twice over, and its time ends when the pool is full
// again and the Pods are gone: what was warm at the start is no gift.
func (c *cluster) sustained(ctx context.Context, size int32) ([]table.Row, error) {
	alike, err := c.alike(ctx)
	if err != nil {
		return nil, err
	}
	works := []struct {
		name string
		do   func() error
	}{
		{fmt.Sprintf("print(1) inside the cluster, %d clients, sustained", clients), func() error { return c.insist(ctx) }},
		{fmt.Sprintf("bare Pods, %d clients, each created, running and deleted", clients), func() error { return c.once(ctx, c.barePod(bareLabel), running) }},
		{fmt.Sprintf("Pods like sandboxes, %d clients, each created, ready and deleted", clients), func() error { return c.once(ctx, alike(), ready) }},
	}
	took, over := make([][]time.Duration, len(works)), make([]time.Duration, len(works))
	for range parts {
		for i, w := range works {
			began := time.Now()
			all, err := again(clients, 2*int(size), w.do)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if i == 0 {
				err = c.claimed(ctx, 1)
			}
			if err := errors.Join(err, c.settled(ctx)); err != nil {
				return nil, err
			}
			took[i], over[i] = append(took[i], all...), over[i]+time.Since(began)
		}
	}
	var rows []table.Row
	for i, w := range works {
		rows = append(rows, table.Latencies(w.name, took[i]).Per(over[i]))
	}
	rows[0] = rows[0].RateBeside(rows[1]).RateBeside(rows[2])
	return rows, nil
}

// insist runs a program; refused, it comes again.
func (c *cluster) insist(ctx context.Context) error {
	for {
		if err := c.inside.run(ctx); !errors.Is(err, errBusy) {
			return err
		}
	}
}

// again has callers do work until it has been done n times.
func again(callers, n int, work func() error) ([]time.Duration, error) {
	var mu sync.Mutex
	var took []time.Duration
	left := n
	_, err := together(callers, func() error {
		for {
			mu.Lock()
			left--
			over := left < 0
			mu.Unlock()
			if over {
				return nil
			}
			began := time.Now()
			err := work()
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
			if err != nil {
				return err
			}
		}
	})
	return took, err
}

const bareLabel = "preheat-bench"

// alike returns what makes Pods of the pool's template that no pool knows.
func (c *cluster) alike(ctx context.Context) (func() *corev1.Pod, error) {
	t, err := c.preheat.SandboxV1alpha1().SandboxTemplates(sandboxes).Get(ctx, templateName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	b, err := template.Build(t, template.DefaultCeiling())
	if err != nil {
		return nil, err
	}
	return func() *corev1.Pod {
		pod := b.Pod(&v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: sandboxes}}, "", template.Admission{Hash: token.Hash("bench")})
		pod.GenerateName, pod.OwnerReferences = bareLabel+"-", nil
		delete(pod.Labels, v1alpha1.LabelPool)
		delete(pod.Labels, v1alpha1.LabelState)
		pod.Labels[bareLabel] = ""
		return pod
	}, nil
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// once makes a Pod, waits until it is as it should be and deletes it: nothing
// that makes one for each run can be faster.
func (c *cluster) once(ctx context.Context, pod *corev1.Pod, good func(*corev1.Pod) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pods := c.kube.CoreV1().Pods(pod.Namespace)
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	remove := func() error { return pods.Delete(context.WithoutCancel(ctx), pod.Name, metav1.DeleteOptions{}) }
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion})
	if err != nil {
		return errors.Join(err, remove())
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, ok := e.Object.(*corev1.Pod); ok && good(p) {
			return remove()
		}
	}
	return errors.Join(fmt.Errorf("the watch of Pod %s ended before it ran", pod.Name), remove())
}
