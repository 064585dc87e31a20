package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/tests/bench/table"
)

// rest is how long nothing happens before each measurement of a latency.
const rest = 300 * time.Millisecond

// latency runs print(1) n times, some at once, on a pool that is full each time
// and has nothing left to do.
func (c *cluster) latency(ctx context.Context, name string, to endpoint, n, atOnce int) ([]table.Row, error) {
	var took []time.Duration
	for len(took) < n {
		if err := c.settled(ctx); err != nil {
			return nil, err
		}
		time.Sleep(rest)
		batch, err := together(atOnce, func() error { return to.run(ctx) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, batch...)
	}
	return []table.Row{table.Latencies(name, took)}, nil
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
func (c *cluster) refill(ctx context.Context, size int32) ([]table.Row, error) {
	var took []time.Duration
	for range 20 {
		if err := c.warm(ctx, size); err != nil {
			return nil, err
		}
		if err := c.inside.run(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := c.warm(ctx, size); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return []table.Row{table.Latencies("the pool is full again after a run", took)}, nil
}

// clients is how many run programs, or make Pods, at once and again and again.
const clients = 8

// parts are the slices of the sustained measurements, so that both see the same
// machine.
const parts = 2

// sustained measures how many executions end in a second when there are always
// more, beside how many bare Pods of the same image the cluster makes, starts
// and deletes in between: the pool's refill decides, since each part takes the
// pool three times over.
func (c *cluster) sustained(ctx context.Context, size int32) ([]table.Row, error) {
	var ours, theirs []time.Duration
	var ourTime, theirTime time.Duration
	n := 3 * int(size)
	for range parts {
		began := time.Now()
		took, err := again(clients, n, func() error {
			err := c.inside.run(ctx)
			for errors.Is(err, errBusy) { // a client that is refused comes again
				err = c.inside.run(ctx)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("sustained executions: %w", err)
		}
		ours, ourTime = append(ours, took...), ourTime+time.Since(began)
		if err := c.settled(ctx); err != nil {
			return nil, err
		}
		began = time.Now()
		if took, err = again(clients, n, func() error { return c.bare(ctx) }); err != nil {
			return nil, fmt.Errorf("bare Pods: %w", err)
		}
		theirs, theirTime = append(theirs, took...), theirTime+time.Since(began)
		if err := c.settled(ctx); err != nil {
			return nil, err
		}
	}
	bare := table.Latencies(fmt.Sprintf("bare Pods, %d clients, each created, running and deleted", clients), theirs).Per(theirTime)
	row := table.Latencies(fmt.Sprintf("print(1) inside the cluster, %d clients, sustained", clients), ours).Per(ourTime)
	return []table.Row{row.RateBeside(bare), bare}, nil
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

// bare makes a Pod, waits until it runs and deletes it: nothing that makes one
// for each run can be faster.
func (c *cluster) bare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pods := c.kube.CoreV1().Pods(metav1.NamespaceDefault)
	pod, err := pods.Create(ctx, c.barePod(bareLabel), metav1.CreateOptions{})
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
		if p, ok := e.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning {
			return remove()
		}
	}
	return errors.Join(fmt.Errorf("the watch of Pod %s ended before it ran", pod.Name), remove())
}

// settled waits until nothing of the last measurement goes on.
func (c *cluster) settled(ctx context.Context) error {
	err := c.until(ctx, "the bare Pods are gone", func() (bool, error) {
		list, err := c.kube.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: bareLabel})
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		return err
	}
	return c.until(ctx, "used sandboxes are gone and the pool is full", func() (bool, error) {
		pool, err := c.preheat.SandboxV1alpha1().SandboxWarmPools(sandboxes).Get(ctx, poolName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		list, err := c.kube.CoreV1().Pods(sandboxes).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == int(*pool.Spec.Replicas) && pool.Status.ReadyReplicas == *pool.Spec.Replicas, err
	})
}

// writes measures how many writes the API server takes for one execution, the
// new sandbox included.
func (c *cluster) writes(ctx context.Context, n int, size int32) ([]table.Row, error) {
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
		return nil, err
	}
	for range n {
		if err := c.warm(ctx, size-1); err != nil {
			return nil, err
		}
		if err := c.inside.run(ctx); err != nil {
			return nil, err
		}
	}
	after, err := settle()
	return []table.Row{table.Single("API writes per execution, the new sandbox and its Pod's end included", "writes", n, (after-before)/float64(n))}, err
}
