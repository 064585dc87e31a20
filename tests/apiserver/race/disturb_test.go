package race_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/preheat-dev/preheat/tests/cluster/faults"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// disturb changes the pools and kills the controller, which lags behind the
// claims, until stopped.
func (r *race) disturb() (stop func()) {
	ctx, cancel := context.WithCancel(r.TB.Context())
	var wg sync.WaitGroup
	every := func(least, most time.Duration, f func(n int)) {
		wg.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-time.After(least + rand.N(most-least)):
					f(n)
				}
			}
		})
	}
	config, stopProxy := r.late()
	controller := r.ControllerAt(config)
	every(10*time.Second, 30*time.Second, func(int) {
		controller.Kill()
		controller = r.ControllerAt(config)
	})
	every(300*time.Millisecond, 2*time.Second, func(n int) {
		// 24 → 0 → 24 and steps between.
		r.resize(n%poolCount, []int{poolSize, 0, poolSize, poolSize / 3}[rand.IntN(4)])
	})
	every(2*time.Second, 6*time.Second, func(n int) { r.rollOut(n) })
	return func() {
		cancel()
		wg.Wait()
		controller.Kill()
		if err := stopProxy(); err != nil {
			r.TB.Error(err)
		}
	}
}

// maxLag bounds how late the controller learns of claims. It is less than the
// grace that a sandbox has whose claim the controller does not know.
const maxLag = 3 * time.Second

// late is a way to the API server on which news of claims come late: the cache
// of a controller may lack the claim of a sandbox that it knows to be claimed,
// or have an earlier one of its name.
func (r *race) late() (*rest.Config, func() error) {
	in := faults.New()
	in.Set(func(c faults.Call) faults.Fault {
		if c.Verb == "WATCH" && c.Resource == "sandboxclaims" {
			return faults.Fault{Lag: rand.N(maxLag)}
		}
		return faults.Fault{}
	})
	config := r.Config()
	stage.AsController(config)
	late, stop, err := in.Proxy(config)
	if err != nil {
		r.TB.Fatal(err)
	}
	return late, stop
}

func (r *race) resize(i, size int) {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, size)
	_, err := r.Preheat.SandboxV1alpha1().SandboxWarmPools(r.Namespace).Patch(r.TB.Context(), poolName(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		r.failed("resize: %v", err)
	}
}

func (r *race) rollOut(n int) {
	patch := fmt.Sprintf(`{"spec":{"podTemplate":{"metadata":{"labels":{"generation":"%d"}}}}}`, n)
	_, err := r.Preheat.SandboxV1alpha1().SandboxTemplates(r.Namespace).Patch(r.TB.Context(), "python", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		r.failed("roll out: %v", err)
	}
}
