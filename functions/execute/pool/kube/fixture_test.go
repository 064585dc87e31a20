package kube

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"

	preheatfake "github.com/preheat-dev/preheat/api/client/clientset/versioned/fake"
	listers "github.com/preheat-dev/preheat/api/client/listers/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// warmPod is a sandbox of pool "code" that can be claimed, unless change makes
// it another.
func warmPod(name, revision string, change func(*corev1.Pod)) *entry {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1alpha1.LabelPool: "code", v1alpha1.LabelState: v1alpha1.StateWarm, v1alpha1.LabelRevision: revision,
		}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	if change != nil {
		change(p)
	}
	return newEntry(p, time.Now())
}

// testOffer is a pool with a template of a revision.
func testOffer(poolName, revision string) offer {
	return offer{
		pool:     &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: poolName}},
		template: &v1alpha1.SandboxTemplate{Status: v1alpha1.SandboxTemplateStatus{Revision: revision}},
	}
}

// testCache knows these sandboxes, and pools "code" and "other".
func testCache(tb testing.TB, sandboxes ...*entry) *cache {
	tb.Helper()
	c := &cache{pods: map[string]*entry{}, warm: warmSet{}, queues: map[string]queue{}, held: map[string]*sandbox{}, change: make(chan struct{})}
	for _, e := range sandboxes {
		c.pods[e.pod.Name] = e
		c.offer(e)
	}
	byNamespace := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	pools, templates := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, byNamespace), toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, byNamespace)
	c.pools, c.templates = listers.NewSandboxWarmPoolLister(pools).SandboxWarmPools("n"), listers.NewSandboxTemplateLister(templates).SandboxTemplates("n")
	tmpl := &v1alpha1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "python"}}
	tmpl.Spec.Languages = []v1alpha1.Language{{Name: "python"}}
	tmpl.Status.Revision = "r"
	if err := templates.Add(tmpl); err != nil {
		tb.Fatal(err)
	}
	for _, name := range []string{"code", "other"} {
		p := &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		p.Spec.SandboxTemplateRef.Name = "python"
		if err := pools.Add(p); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

// testPool is a pool of namespace n over clients that hold nothing.
func testPool(t *testing.T, c *cache) (*Pool, *fake.Clientset, *preheatfake.Clientset) {
	t.Helper()
	core, preheat := fake.NewClientset(), preheatfake.NewSimpleClientset()
	p := &Pool{
		namespace: "n", remember: defaultRemember, kube: core, client: preheat, cache: c, reach: testReach(t, c.target),
		metrics: NewMetrics(prometheus.NewRegistry()), log: slog.New(slog.DiscardHandler), tracer: otel.Tracer(tracerName),
	}
	p.ctx, p.cancel = context.WithCancel(t.Context())
	t.Cleanup(func() { p.cancel(); p.work.Wait() })
	return p, core, preheat
}
