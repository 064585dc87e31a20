package kube

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// In whatever order executions come and go and pools change their size: the
// head of the queue is admitted, nobody is before someone who came earlier and
// is as urgent, and events never delay a request that nobody has admitted yet.
func TestQueue(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var q queue
		start := time.Unix(0, 0)
		admitted := map[*waiter]bool{}
		for step := range 200 {
			size := 1 + r.IntN(4)
			var next *waiter
			for _, w := range q {
				if !w.in && (next == nil || before(w, next)) {
					next = w
				}
			}
			switch {
			case len(q) > 0 && r.IntN(5) < 2:
				q = q.leave(q[r.IntN(len(q))], size)
			default:
				w := &waiter{lowPriority: r.IntN(2) == 0, since: start.Add(time.Duration(step) * time.Second), admitted: make(chan struct{})}
				if r.IntN(10) == 0 {
					w.since = start.Add(time.Duration(r.IntN(step+1))*time.Second + time.Millisecond) // it comes back
				}
				q = q.join(w, size)
			}
			check(t, q, size, next, admitted)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

// check tells what is wrong with a queue; next is who was to be admitted next
// before its last change.
func check(t *testing.T, q queue, size int, next *waiter, admitted map[*waiter]bool) {
	t.Helper()
	outside := slices.IndexFunc(q, func(w *waiter) bool { return !w.in })
	if outside < 0 {
		outside = len(q)
	}
	if outside < min(size, len(q)) {
		t.Errorf("%d of %d are admitted, want %d", outside, len(q), size)
	}
	for i, w := range q {
		select {
		case <-w.admitted:
			if !w.in || i >= outside {
				t.Errorf("place %d is admitted behind one that is not", i)
			}
			if !admitted[w] && next != nil && next != w && !next.in && slices.Contains(q, next) && before(next, w) {
				t.Errorf("place %d was admitted before its turn", i)
			}
			admitted[w] = true
		default:
			if w.in || i > outside && before(w, q[i-1]) {
				t.Errorf("place %d is out of order", i)
			}
		}
	}
}

func TestMaxInFlight(t *testing.T) {
	for want, spec := range map[int]v1alpha1.SandboxWarmPoolSpec{
		4: {Replicas: ptr.To[int32](4)},
		1: {Replicas: ptr.To[int32](0)},
		9: {Autoscaling: &v1alpha1.Autoscaling{Min: 1, Max: 9}},
	} {
		if got := maxInFlight(&v1alpha1.SandboxWarmPool{Spec: spec}); got != want {
			t.Errorf("%+v: %d, want %d", spec, got, want)
		}
	}
	if got := maxInFlight(nil); got != 1 {
		t.Errorf("no pool: %d, want 1", got)
	}
}
