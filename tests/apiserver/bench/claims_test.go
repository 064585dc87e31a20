// Package bench_test measures claims on a real API server with played nodes:
// what the control plane adds to an execution, without a sandbox's own time.
package bench_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/bench/table"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

var (
	count  = flag.Int("n", 20, "how many claims each row measures")
	out    = flag.String("out", "", "the file to write the rows to")
	shared *stage.Stage
)

func TestMain(m *testing.M) {
	flag.Parse()
	stage.Main(m, func(s *stage.Stage) { shared = s })
}

const (
	poolSize = 40
	many     = 20
	floor    = "one label compare-and-set"
)

func TestClaimLatency(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("warm", "python", poolSize), sp.Pool("cold", "python", 0))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("the pool is warm", func() bool { return warm(p) == poolSize })

	rows := []table.Row{measure(t, floor, 1, compareAndSet(sp))}
	rows = append(rows, measure(t, "one SandboxClaim created", 1, createClaim(sp)).Beside(rows[0]))
	for _, c := range []struct {
		name, pool string
		callers    int
	}{
		{"claim, fast path, alone", "warm", 1}, {fmt.Sprintf("claim, fast path, %d at once", many), "warm", many},
		{"claim, slow path, alone", "cold", 1}, {fmt.Sprintf("claim, slow path, %d at once", many), "cold", many},
	} {
		sp.Eventually("the pool is warm", func() bool { return warm(p) == poolSize })
		rows = append(rows, measure(t, c.name, c.callers, claim(t, p, c.pool, c.callers)).Beside(rows[0]))
	}
	if err := table.Show(os.Stdout, rows); err != nil {
		t.Error(err)
	}
	for _, r := range rows {
		if r.P50 <= 0 || r.P99 < r.P50 {
			t.Errorf("%s: p50 %v, p99 %v", r.Name, r.P50, r.P99)
		}
	}
	if *out != "" {
		if err := table.Save(*out, rows); err != nil {
			t.Error(err)
		}
	}
	for _, f := range node.Faults() {
		t.Error(f)
	}
}

func warm(p *kube.Pool) int {
	for _, s := range p.Status() {
		if s.Name == "warm" {
			return s.Warm
		}
	}
	return 0
}

// measure runs an operation, which returns how long its measured part took.
func measure(t *testing.T, name string, callers int, op func(context.Context) (time.Duration, error)) table.Row {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for range max(*count/callers, 1) {
				d, err := op(t.Context())
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(took) == 0 {
		t.Fatalf("%s: nothing was measured", name)
	}
	return table.Latencies(name, took).Per(time.Since(start))
}

// claim claims a sandbox and gives it back. On the fast path the pool gets
// time to refill between, which is not measured.
func claim(t *testing.T, p *kube.Pool, name string, callers int) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for name == "warm" && warm(p) < min(2*callers, poolSize) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-p.Changed():
			}
		}
		start := time.Now()
		s, err := p.Claim(ctx, pool.Claim{Language: "python", Pool: name, Deadline: start.Add(time.Minute)})
		took := time.Since(start)
		if err != nil {
			return 0, err
		}
		defer s.Release()
		var output fakenode.Output
		if _, err := s.Run(ctx, fakenode.Program(), &output); err != nil {
			return 0, err
		}
		if string(output) != s.Name() {
			t.Errorf("sandbox %q ran the program of %s", output, s.Name())
		}
		return took, nil
	}
}

// createClaim is the other half of the fast path: a claim that nobody binds.
func createClaim(sp *stage.Space) func(context.Context) (time.Duration, error) {
	claims := sp.Preheat.SandboxV1alpha1().SandboxClaims(sp.Namespace)
	n := 0
	return func(ctx context.Context) (time.Duration, error) {
		n++
		c := &v1alpha1.SandboxClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("half-%d", n)},
			Spec:       v1alpha1.SandboxClaimSpec{WarmPoolRef: v1alpha1.Reference{Name: "warm"}, Binding: v1alpha1.BindingClaimant, BindTimeoutSeconds: 60},
		}
		start := time.Now()
		if _, err := claims.Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return 0, err
		}
		took := time.Since(start)
		return took, claims.Delete(ctx, c.Name, metav1.DeleteOptions{})
	}
}

// compareAndSet is the least that a claim can cost: one lock that is free.
func compareAndSet(sp *stage.Space) func(context.Context) (time.Duration, error) {
	pods := sp.Kube.CoreV1().Pods(sp.Namespace)
	n := 0
	return func(ctx context.Context) (time.Duration, error) {
		n++
		name := fmt.Sprintf("floor-%d", n)
		_, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelState: v1alpha1.StateWarm}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return 0, err
		}
		patch, err := lock.Claim(lock.Holder{Claim: "c"})
		if err != nil {
			return 0, err
		}
		start := time.Now()
		if _, err = pods.Patch(ctx, name, lock.PatchType, patch, metav1.PatchOptions{}); err != nil {
			return 0, err
		}
		took := time.Since(start)
		return took, pods.Delete(ctx, name, metav1.DeleteOptions{})
	}
}
