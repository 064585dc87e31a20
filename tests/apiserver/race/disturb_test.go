package race_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// disturb changes the pools and kills the controller, until stopped.
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
	controller := r.Controller()
	every(10*time.Second, 30*time.Second, func(int) {
		controller.Kill()
		controller = r.Controller()
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
	}
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
