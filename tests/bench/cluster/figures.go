package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/tests/bench/table"
)

// rest is how long nothing happens before each measurement of a latency.
const rest = 300 * time.Millisecond

// latency runs print(1) n times, some at once, on a pool that is full each time
// and has nothing left to do.
//
// Beside it stands what one write takes then: the label of a Pod, patched.
func (c *cluster) latency(ctx context.Context, name string, to endpoint, n, atOnce int) ([]table.Row, error) {
	// The first one brings up what has scaled to zero.
	if err := errors.Join(to.run(ctx), c.claimed(ctx, 1)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var took, writes []time.Duration
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
		if err := c.claimed(ctx, atOnce); err != nil {
			return nil, err
		}
		if err := c.settled(ctx); err != nil {
			return nil, err
		}
		time.Sleep(rest)
		if batch, err = together(atOnce, func() error { return c.idle.patch(ctx) }); err != nil {
			return nil, fmt.Errorf("patch a label: %w", err)
		}
		writes = append(writes, batch...)
	}
	patch := table.Latencies(strings.Replace(name, "print(1)", "a label patched", 1), writes)
	return []table.Row{table.Latencies(name, took).Beside(patch), patch}, nil
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
		if err := c.claimed(ctx, 1); err != nil {
			return nil, err
		}
		if err := c.warm(ctx, size); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return []table.Row{table.Latencies("the pool is full again after a run", took)}, nil
}

// claimed waits until so many sandboxes of the full pool have been seen to be
// claimed.
func (c *cluster) claimed(ctx context.Context, n int) error {
	return c.pods.until(ctx, "what was claimed is seen", func(_, ready int) bool { return ready <= int(c.size)-n })
}

// settled waits until nothing of the last measurement goes on.
func (c *cluster) settled(ctx context.Context) error {
	err := c.until(ctx, "the Pods beside the pool are gone", func() (bool, error) {
		list, err := c.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: bareLabel})
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		return err
	}
	err = c.until(ctx, "the pool says that it is full", func() (bool, error) {
		pool, err := c.preheat.SandboxV1alpha1().SandboxWarmPools(sandboxes).Get(ctx, poolName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return pool.Status.ReadyReplicas == c.size, nil
	})
	if err != nil {
		return err
	}
	return c.pods.until(ctx, "used sandboxes are gone and the pool is full", func(all, ready int) bool { return all == int(c.size) && ready == int(c.size) })
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
