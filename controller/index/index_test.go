package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

func newIndex() *Index {
	return &Index{
		pods:   cache.NewIndexer(cache.MetaNamespaceKeyFunc, withNamespace(ofPods())),
		claims: cache.NewIndexer(cache.MetaNamespaceKeyFunc, withNamespace(ofClaims())),
	}
}

// withNamespace adds the index that informers have by themselves.
func withNamespace(own cache.Indexers) cache.Indexers {
	own[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	return own
}

func podOf(namespace, name, pool, template, claim string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		v1alpha1.LabelPool: pool, v1alpha1.LabelTemplate: template,
	}}}
	if claim != "" {
		p.Labels[v1alpha1.LabelClaim] = claim
	}
	return p
}

func sortedNames[T metav1.Object](list []T) string {
	var names []string
	for _, x := range list {
		names = append(names, x.GetName())
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

// TestPodsAreFoundAsByAScan changes Pods at random and compares each look-up
// with a walk over all of them.
func TestPodsAreFoundAsByAScan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	x := newIndex()
	oneOf2 := func(prefix string) string { return fmt.Sprint(prefix, random.IntN(2)) }
	for range 500 {
		p := podOf(oneOf2("ns"), fmt.Sprint("p", random.IntN(20)), oneOf2("pool"), oneOf2("template"), "")
		if random.IntN(2) == 0 {
			p.Labels[v1alpha1.LabelClaim] = oneOf2("claim")
		}
		if random.IntN(4) == 0 {
			_ = x.pods.Delete(p) // also what is not there
		} else if err := x.pods.Update(p); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			label, value string
			find         func(namespace, name string) ([]*corev1.Pod, error)
		}{
			{v1alpha1.LabelPool, oneOf2("pool"), x.PodsOfPool},
			{v1alpha1.LabelTemplate, oneOf2("template"), x.PodsOfTemplate},
			{v1alpha1.LabelClaim, oneOf2("claim"), x.PodsOfClaim},
		} {
			want, err := corelisters.NewPodLister(x.pods).Pods("ns0").List(labels.SelectorFromSet(labels.Set{test.label: test.value}))
			if err != nil {
				t.Fatal(err)
			}
			got, err := test.find("ns0", test.value)
			if err != nil || sortedNames(got) != sortedNames(want) {
				t.Fatalf("%s=%s: %s (%v), want %s", test.label, test.value, sortedNames(got), err, sortedNames(want))
			}
		}
	}
}

func TestFinishedClaimsAreRecordsOnly(t *testing.T) {
	x := newIndex()
	for name, change := range map[string]func(*v1alpha1.SandboxClaim){
		"runs":  func(*v1alpha1.SandboxClaim) {},
		"event": func(c *v1alpha1.SandboxClaim) { c.Annotations = map[string]string{v1alpha1.AnnotationBegun: "true"} },
		"record": func(c *v1alpha1.SandboxClaim) {
			c.Annotations = map[string]string{v1alpha1.AnnotationBegun: "true"}
			finish(c)
		},
		"over":      finish,
		"elsewhere": func(c *v1alpha1.SandboxClaim) { c.Namespace = "other" },
	} {
		c := &v1alpha1.SandboxClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec:       v1alpha1.SandboxClaimSpec{WarmPoolRef: v1alpha1.Reference{Name: "pool"}},
		}
		change(c)
		if err := x.claims.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if active, err := x.ActiveClaimsOfPool("ns", "pool"); err != nil || sortedNames(active) != "[event runs]" {
		t.Errorf("active are %s (%v)", sortedNames(active), err)
	}
	if found, err := x.Records("ns"); err != nil || sortedNames(found) != "[record]" {
		t.Errorf("records are %s (%v)", sortedNames(found), err)
	}
	if namespaces := x.NamespacesWithRecords(); fmt.Sprint(namespaces) != "[ns]" {
		t.Errorf("records are in %v", namespaces)
	}
}

func finish(c *v1alpha1.SandboxClaim) { c.Status.FinishedAt = &metav1.Time{} }

// BenchmarkPodsOfClaim finds the one Pod of a claim among many, by the index and
// by the walk over all of them that it stands in for.
func BenchmarkPodsOfClaim(b *testing.B) {
	for _, n := range []int{10, 1000, 5000} {
		x := newIndex()
		for i := range n {
			if err := x.pods.Add(podOf("ns", fmt.Sprint("p", i), "pool", "template", fmt.Sprint("claim", i))); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("index/%d", n), func(b *testing.B) {
			for b.Loop() {
				if found, _ := x.PodsOfClaim("ns", "claim7"); len(found) != 1 {
					b.Fatal("not found")
				}
			}
		})
		b.Run(fmt.Sprintf("walk/%d", n), func(b *testing.B) {
			for b.Loop() {
				found, _ := corelisters.NewPodLister(x.pods).Pods("ns").List(labels.SelectorFromSet(labels.Set{v1alpha1.LabelClaim: "claim7"}))
				if len(found) != 1 {
					b.Fatal("not found")
				}
			}
		})
	}
}
