package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// latency runs print(1) n times, some at once, on a pool that is full each time.
func (c *cluster) latency(ctx context.Context, name string, to endpoint, n, atOnce int, size int32) (figure, error) {
	var took []time.Duration
	for len(took) < n {
		// One at a time leaves the pool nearly full; many at once wait for it.
		need := size - 1
		if atOnce > 1 {
			need = size
		}
		if err := c.warm(ctx, need); err != nil {
			return figure{}, err
		}
		batch, err := together(atOnce, func() error { return to.run(ctx) })
		if err != nil {
			return figure{}, fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, batch...)
	}
	return spread(name, took), nil
}

// together does work some times at once and says how long each took.
func together(n int, work func() error) ([]time.Duration, error) {
	took, errs := make([]time.Duration, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			began := time.Now()
			errs[i] = work()
			took[i] = time.Since(began)
		})
	}
	all.Wait()
	return took, errors.Join(errs...)
}

// refill measures how long a full pool takes to be full again after one run.
func (c *cluster) refill(ctx context.Context, size int32) (figure, error) {
	var took []time.Duration
	for range 20 {
		if err := c.warm(ctx, size); err != nil {
			return figure{}, err
		}
		if err := c.inside.run(ctx); err != nil {
			return figure{}, err
		}
		began := time.Now()
		if err := c.warm(ctx, size); err != nil {
			return figure{}, err
		}
		took = append(took, time.Since(began))
	}
	return spread("the pool is full again after a run", took), nil
}

// barePods measures how many Pods of the sandbox's image the cluster starts in
// a second: nothing that makes one for each run can be faster.
func (c *cluster) barePods(ctx context.Context, n int) (f figure, err error) {
	const label = "preheat-bench"
	pods := c.kube.CoreV1().Pods(metav1.NamespaceDefault)
	remove := func() error {
		return pods.DeleteCollection(context.WithoutCancel(ctx), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: label})
	}
	defer func() { err = errors.Join(err, remove()) }()
	began := time.Now()
	_, err = together(n, func() error {
		_, err := pods.Create(ctx, c.barePod(label), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return figure{}, err
	}
	err = c.until(ctx, "bare Pods run", func() (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return false, err
		}
		running := 0
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == n, nil
	})
	return single(fmt.Sprintf("bare Pods, %d at once, created until they run", n), "per second", n, float64(n)/time.Since(began).Seconds()), err
}

// sustained measures how many executions end in a second when there are always
// more: the pool's refill decides.
func (c *cluster) sustained(ctx context.Context, n int) (figure, error) {
	const clients = 8
	var mu sync.Mutex
	left, began := n, time.Now()
	_, err := together(clients, func() error {
		for {
			mu.Lock()
			left--
			over := left < 0
			mu.Unlock()
			if over {
				return nil
			}
			// A client that is refused comes again.
			err := c.inside.run(ctx)
			for errors.Is(err, errBusy) {
				err = c.inside.run(ctx)
			}
			if err != nil {
				return err
			}
		}
	})
	return single(fmt.Sprintf("print(1) inside the cluster, %d clients, sustained", clients), "per second", n, float64(n)/time.Since(began).Seconds()), err
}

// writes measures how many writes the API server takes for one execution, the
// new sandbox included.
func (c *cluster) writes(ctx context.Context, n int, size int32) (figure, error) {
	settle := func() (float64, error) {
		if err := c.warm(ctx, size); err != nil {
			return 0, err
		}
		// Statuses and events follow.
		time.Sleep(5 * time.Second)
		return c.writeCount(ctx)
	}
	before, err := settle()
	if err != nil {
		return figure{}, err
	}
	for range n {
		if err := c.warm(ctx, size-1); err != nil {
			return figure{}, err
		}
		if err := c.inside.run(ctx); err != nil {
			return figure{}, err
		}
	}
	after, err := settle()
	return single("API writes per execution, the new sandbox and its Pod's end included", "writes", n, (after-before)/float64(n)), err
}
