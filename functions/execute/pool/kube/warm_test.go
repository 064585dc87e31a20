package kube

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Whatever happens to sandboxes, the candidates are those that can be claimed
// and are not taken, in order of age.
func TestCandidatesFollowTheSandboxes(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := testCache(t)
		var taken []*candidate
		for step := range 300 {
			name := fmt.Sprint(r.IntN(12))
			known := c.pods[name]
			switch r.IntN(6) {
			case 0, 1:
				pod := warmPod(name, fmt.Sprint("r", r.IntN(2)), func(p *corev1.Pod) {
					p.UID = "1"
					p.Labels[v1alpha1.LabelPool] = fmt.Sprint("pool", r.IntN(2))
					p.CreationTimestamp = metav1.NewTime(time.Unix(r.Int64N(5), 0))
				}).pod
				if known != nil && r.IntN(4) > 0 {
					pod = known.pod.DeepCopy()
				} else if known != nil {
					pod.UID = known.pod.UID + "1"
				}
				if r.IntN(3) == 0 {
					pod.Labels[v1alpha1.LabelState] = v1alpha1.StateClaimed
				}
				c.set(pod)
			case 2:
				if known != nil {
					c.remove(known.pod)
				}
			case 3, 4:
				if e := c.take(testOffer(fmt.Sprint("pool", r.IntN(2)), "r1"), nil); e != nil {
					taken = append(taken, e)
				}
			case 5:
				c.release(taken...)
				taken = nil
			}
			for _, poolName := range []string{"pool0", "pool1"} {
				checkWarm(t, c, poolName)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

func checkWarm(t *testing.T, c *cache, poolName string) {
	t.Helper()
	want := 0
	for name, e := range c.pods {
		is := !e.taken && usable(e.pod) && e.pod.Labels[v1alpha1.LabelPool] == poolName
		if is {
			want++
		}
		if slices.Contains(c.warm[poolName][e.pod.Labels[v1alpha1.LabelRevision]], e) != is {
			t.Errorf("sandbox %s of pool %s is a candidate: %v, want %v", name, poolName, !is, is)
		}
	}
	if got := c.warm.count(poolName); got != want {
		t.Errorf("pool %s has %d candidates, want %d", poolName, got, want)
	}
	for revision, l := range c.warm[poolName] {
		if len(l) == 0 || !slices.IsSortedFunc(l, older) {
			t.Errorf("pool %s, revision %s: %d candidates, or not in order", poolName, revision, len(l))
		}
	}
}

// Watchers of the pools are woken when a sandbox's state changes, not each time
// that anything is written to a Pod.
func TestOnlyChangesOfStateWakeWatchers(t *testing.T) {
	pod := warmPod("p", "r", nil).pod
	claimed := pod.DeepCopy()
	claimed.Labels[v1alpha1.LabelState] = v1alpha1.StateClaimed
	touched := pod.DeepCopy()
	touched.Annotations = map[string]string{"seen": "again"}
	successor := pod.DeepCopy()
	successor.UID = "2"
	for name, test := range map[string]struct {
		see  func(*cache)
		want bool
	}{
		"nothing new":            {func(c *cache) { c.set(touched) }, false},
		"another state":          {func(c *cache) { c.set(claimed) }, true},
		"another of the name":    {func(c *cache) { c.set(successor) }, true},
		"a new one":              {func(c *cache) { c.set(warmPod("q", "r", nil).pod) }, true},
		"one that is gone":       {func(c *cache) { c.remove(pod) }, true},
		"one that was not there": {func(c *cache) { c.remove(warmPod("q", "r", nil).pod) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := testCache(t, newEntry(pod, time.Now()))
			changed := c.changed()
			test.see(c)
			select {
			case <-changed:
				if !test.want {
					t.Error("watchers were woken")
				}
			default:
				if test.want {
					t.Error("no watcher was woken")
				}
			}
		})
	}
}
