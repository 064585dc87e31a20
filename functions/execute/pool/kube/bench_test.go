package kube

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	listers "github.com/preheat-dev/preheat/api/client/listers/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

const manySandboxes = 5000

// fullCache knows two pools of so many warm sandboxes together.
func fullCache(b *testing.B) *cache {
	b.Helper()
	c := testCache()
	pools, templates := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}),
		toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	c.pools, c.temps = listers.NewSandboxWarmPoolLister(pools).SandboxWarmPools("n"), listers.NewSandboxTemplateLister(templates).SandboxTemplates("n")
	tmpl := &v1alpha1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "python"}}
	tmpl.Spec.Languages = []v1alpha1.Language{{Name: "python"}}
	tmpl.Status.Revision = "r"
	if err := templates.Add(tmpl); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"code", "other"} {
		p := &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		p.Spec.SandboxTemplateRef.Name = "python"
		if err := pools.Add(p); err != nil {
			b.Fatal(err)
		}
	}
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
		c.giveBack(e)
	}
}
