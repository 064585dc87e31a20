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
// head of the line is admitted, nobody is before someone who came earlier and
// is as urgent, and events never delay a request that nobody has admitted yet.
func TestLine(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l line
		start := time.Unix(0, 0)
		admitted := map[*waiter]bool{}
		for step := range 200 {
			size := 1 + r.IntN(4)
			var next *waiter
			for _, w := range l {
				if !w.in && (next == nil || before(w, next)) {
					next = w
				}
			}
			switch {
			case len(l) > 0 && r.IntN(5) < 2:
				l = l.leave(l[r.IntN(len(l))], size)
			default:
				w := &waiter{patient: r.IntN(2) == 0, since: start.Add(time.Duration(step) * time.Second), admitted: make(chan struct{})}
				if r.IntN(10) == 0 {
					w.since = start.Add(time.Duration(r.IntN(step+1))*time.Second + time.Millisecond) // it comes back
				}
				l = l.join(w, size)
			}
			check(t, l, size, next, admitted)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

// check tells what is wrong with a line; next is who was to be admitted next
// before its last change.
func check(t *testing.T, l line, size int, next *waiter, admitted map[*waiter]bool) {
	t.Helper()
	outside := slices.IndexFunc(l, func(w *waiter) bool { return !w.in })
	if outside < 0 {
		outside = len(l)
	}
	if outside < min(size, len(l)) {
		t.Errorf("%d of %d are admitted, want %d", outside, len(l), size)
	}
	for i, w := range l {
		select {
		case <-w.admitted:
			if !w.in || i >= outside {
				t.Errorf("place %d is admitted behind one that is not", i)
			}
			if !admitted[w] && next != nil && next != w && !next.in && slices.Contains(l, next) && before(next, w) {
				t.Errorf("place %d was admitted before its turn", i)
			}
			admitted[w] = true
		default:
			if w.in || i > outside && before(w, l[i-1]) {
				t.Errorf("place %d is out of order", i)
			}
		}
	}
}

func TestWidth(t *testing.T) {
	for want, spec := range map[int]v1alpha1.SandboxWarmPoolSpec{
		4: {Replicas: ptr.To[int32](4)},
		1: {Replicas: ptr.To[int32](0)},
		9: {Autoscaling: &v1alpha1.Autoscaling{Min: 1, Max: 9}},
	} {
		if got := width(&v1alpha1.SandboxWarmPool{Spec: spec}); got != want {
			t.Errorf("%+v: %d, want %d", spec, got, want)
		}
	}
	if got := width(nil); got != 1 {
		t.Errorf("no pool: %d, want 1", got)
	}
}
