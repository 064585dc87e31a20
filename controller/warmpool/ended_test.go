package warmpool

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned/fake"
	listers "github.com/preheat-dev/preheat/api/client/listers/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/plan"
)

// The claim of an event gets the name of an earlier one. Its sandbox is not
// destroyed when the cache shows the earlier one still, or none, whatever is
// remembered of that one's end (I3); it is when its own claim has ended (I4).
func TestRecreatedClaimKeepsItsSandbox(t *testing.T) {
	claim := func(uid types.UID, finished bool) *v1alpha1.SandboxClaim {
		c := &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "event-x", UID: uid, ResourceVersion: "1"}}
		if finished {
			c.Status.FinishedAt = &metav1.Time{Time: t0}
		}
		return c
	}
	first, second := claim("u1", false), claim("u2", false)
	for name, test := range map[string]struct {
		cached, live *v1alpha1.SandboxClaim
		seen, ended  []*v1alpha1.SandboxClaim
		// bearsUID says whether the Pod is labelled with its claim's UID.
		bearsUID bool
		// early and late are whether its claim counts as ended at once, and
		// after the grace of orphans.
		early, late bool
	}{
		"the first claim is still cached":      {cached: first, live: second, seen: []*v1alpha1.SandboxClaim{first}, bearsUID: true},
		"the first claim's end is remembered":  {live: second, ended: []*v1alpha1.SandboxClaim{first}, bearsUID: true},
		"nothing is known of it":               {live: second, bearsUID: true},
		"it is cached":                         {cached: second, live: second, bearsUID: true},
		"it has finished":                      {cached: claim("u2", true), bearsUID: true, early: true, late: true},
		"its end is remembered":                {ended: []*v1alpha1.SandboxClaim{second}, bearsUID: true, early: true, late: true},
		"it is gone":                           {bearsUID: true, late: true},
		"another one took its place":           {live: claim("u3", false), bearsUID: true, late: true},
		"without a UID: its end is remembered": {ended: []*v1alpha1.SandboxClaim{second}, early: true, late: true},
		"without a UID: it has begun again":    {live: second, ended: []*v1alpha1.SandboxClaim{first}, seen: []*v1alpha1.SandboxClaim{second}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset()
			if test.live != nil {
				client = fake.NewSimpleClientset(test.live)
			}
			index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			if test.cached != nil {
				if err := index.Add(test.cached); err != nil {
					t.Fatal(err)
				}
			}
			r := &poolReconciler{client: client, claims: listers.NewSandboxClaimLister(index), ledger: newLedger()}
			for _, c := range test.ended {
				r.ledger.claimEnded(c, t0)
			}
			for _, c := range test.seen {
				r.ledger.claimSeen(c)
			}
			held := pod(v1alpha1.StateClaimed, ready("True"))
			held.Namespace, held.Labels[v1alpha1.LabelClaim] = "n", "event-x"
			if test.bearsUID {
				held.Labels[v1alpha1.LabelClaimUID] = "u2"
			}
			m := newMemory()
			if got := r.claimEnded(t.Context(), m, held, t0); got != test.early {
				t.Errorf("ended at once: %v, want %v", got, test.early)
			}
			// Its end stays known however late the sandbox is destroyed.
			for range 2 {
				if got := r.claimEnded(t.Context(), m, held, t0.Add(orphanGrace)); got != test.late {
					t.Errorf("ended after the grace: %v, want %v", got, test.late)
				}
			}
		})
	}
}

// A claimed sandbox without its claim is looked at again until it is destroyed,
// and not while it ends, which may take long.
func TestEndingSandboxWakesNobody(t *testing.T) {
	for name, ending := range map[string]*corev1.Pod{
		"being deleted": pod(v1alpha1.StateClaimed, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t0} }),
		"given up":      pod(v1alpha1.StateRetired, nil),
	} {
		m := newMemory()
		m.orphans["p"] = t0
		m.refresh([]*corev1.Pod{ending}, nil, passed{}, t0)
		o := &observation{pool: &v1alpha1.SandboxWarmPool{}, pods: []*corev1.Pod{ending}, memory: m, now: t0,
			over: func(*corev1.Pod) bool { t.Errorf("%s: asks for its claim", name); return true }}
		o.state()
		if at := m.wake(); !at.IsZero() {
			t.Errorf("%s: wakes at %v", name, at)
		}
	}
}

// A controller that has just begun to lead keeps an autoscaled pool at its size,
// and lowers it slowly from there.
func TestNewLeaderKeepsTheSize(t *testing.T) {
	pool := &v1alpha1.SandboxWarmPool{
		Spec:   v1alpha1.SandboxWarmPoolSpec{Autoscaling: &v1alpha1.Autoscaling{Min: 2, Max: 100}},
		Status: v1alpha1.SandboxWarmPoolStatus{DesiredReplicas: 50},
	}
	var warm []*corev1.Pod
	for i := range 50 {
		p := pod(v1alpha1.StateWarm, ready("True"))
		p.Name = string(rune('a'+i/26)) + string(rune('a'+i%26))
		warm = append(warm, p)
	}
	m := newMemory()
	look := func(at time.Time) plan.Actions {
		m.refresh(warm, nil, passed{}, at)
		m.resume(pool, at)
		o := &observation{pool: pool, pods: warm, memory: m, revision: "r", now: at, maxCreating: 16}
		a := plan.Plan(o.state(), at)
		m.size = a.Memory
		return a
	}
	for _, after := range []time.Duration{0, time.Second, 14 * time.Second} {
		if a := look(t0.Add(after)); a.Desired != 50 || len(a.Retire) > 0 {
			t.Errorf("after %v: %d wanted, %d retired", after, a.Desired, len(a.Retire))
		}
	}
	if a := look(t0.Add(15 * time.Second)); a.Desired != 45 || len(a.Retire) != 5 {
		t.Errorf("then: %d wanted, %d retired", a.Desired, len(a.Retire))
	}
}
