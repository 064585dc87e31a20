package kube

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

const manySandboxes = 5000

// fullCache knows two pools of so many warm sandboxes together.
func fullCache(b *testing.B) *cache {
	b.Helper()
	c := testCache(b)
	start := time.Now().Add(-time.Hour)
	for i := range manySandboxes {
		c.set(warmPod(fmt.Sprintf("p%d", i), "r", func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(i) * time.Second))
			if i%2 == 0 {
				p.Labels[v1alpha1.LabelPool] = "other"
			}
		}).pod)
	}
	return c
}

// A claim's part of the cache: the pool is chosen and a candidate taken, which
// comes back here so that there are as many for the next.
func BenchmarkCandidate(b *testing.B) {
	c := fullCache(b)
	want := pool.Claim{Language: "python"}
	for b.Loop() {
		o, err := c.choose(want, func(string) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
		e := c.take(o, nil)
		if e == nil {
			b.Fatal("there is no candidate")
		}
		c.release(e)
	}
}
