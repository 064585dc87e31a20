package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/internal/plan"
)

// step lets one random thing happen.
func (w *world) step() {
	switch w.rnd.IntN(14) {
	case 0, 1:
		w.finishCreation()
	case 2, 3:
		if b := w.pick(func(b *box) bool { return b.Phase == plan.Warming && b.state == "warm" }); b != nil && !w.broken {
			b.Phase = plan.Warm
		}
	case 4, 5:
		w.arrive(true)
	case 6:
		w.arrive(false)
	case 7:
		w.endClaim()
	case 8:
		w.configure()
	case 9:
		if b := w.pick(func(b *box) bool { return b.state == "warm" }); b != nil {
			b.Phase = plan.Failed
			w.note("%s failed", b.Name)
		}
	case 10:
		w.broken = w.rnd.IntN(3) == 0
	case 11:
		w.now = w.now.Add(time.Duration(w.rnd.IntN(100)) * time.Second)
	default:
		w.now = w.now.Add(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
		if w.rnd.IntN(3) > 0 { // else it decides on what it saw before
			w.look()
		}
		if w.rnd.IntN(10) == 0 { // a restart forgets what is not in the cluster
			w.state.Backoff, w.state.Size.Memory = plan.Backoff{}, plan.Memory{}
		}
		// Creations under way are the pool's own knowledge, never stale.
		w.state.Creating = w.creating
		w.plan()
	}
}

func (w *world) finishCreation() {
	if w.creating == 0 {
		return
	}
	w.creating--
	if w.broken && w.rnd.IntN(2) == 0 {
		w.state.Backoff = w.state.Backoff.Failed(w.state.Revision, plan.Problem{Reason: "QuotaExceeded"}, w.now)
		w.note("creation failed")
		return
	}
	w.next++
	name := fmt.Sprintf("s%04d", w.next)
	w.boxes[name] = &box{state: "warm", Sandbox: plan.Sandbox{Name: name, Phase: plan.Warming, Revision: w.state.Revision, Created: w.now}}
	// An expectation: what this pool made, it knows of at once.
	w.state.Sandboxes = append(w.state.Sandboxes, w.boxes[name].Sandbox)
	if len(w.boxes)+w.creating > w.state.Limit {
		w.fail("I9: %d sandboxes, limit %d", len(w.boxes)+w.creating, w.state.Limit)
	}
}

// arrive brings a claim: fast ones race for a warm sandbox themselves.
func (w *world) arrive(fast bool) {
	w.next++
	c := &claim{Claim: plan.Claim{Name: fmt.Sprintf("c%04d", w.next), Created: w.now, Deadline: w.now.Add(time.Minute)}}
	w.claims[c.Name] = c
	if !fast {
		return
	}
	if b := w.pick(func(b *box) bool { return b.Phase == plan.Warm }); b != nil {
		w.claim(b.Name, c)
	}
}

func (w *world) endClaim() {
	b := w.pick(func(b *box) bool { return b.state == "claimed" && !b.Over })
	if b == nil {
		return
	}
	b.Over = true
	w.claims[b.owners[0]].over = true
}

func (w *world) configure() {
	switch w.rnd.IntN(3) {
	case 0:
		w.state.Size.Replicas = w.rnd.IntN(6)
	case 1:
		w.next++
		w.state.Revision = fmt.Sprintf("r%d", w.next)
	case 2:
		w.state.Size.Autoscale = nil
		if w.rnd.IntN(2) == 0 {
			w.state.Size.Autoscale = &plan.Autoscale{Min: 1, Max: 5, Rate: w.rnd.Float64() * 4, Refill: time.Second}
		}
	}
	w.note("configured %+v %s", w.state.Size, w.state.Revision)
}

// settle lets the pool work in peace, and checks that it reaches its target.
func (w *world) settle() {
	w.broken = false
	for range 300 {
		w.look()
		w.plan()
		w.now = w.now.Add(time.Second)
		for w.creating > 0 {
			w.finishCreation()
		}
		for _, b := range w.boxes {
			if b.Phase == plan.Warming && b.state == "warm" {
				b.Phase = plan.Warm
			}
		}
		for w.pick(func(b *box) bool { return b.state == "claimed" && !b.Over }) != nil {
			w.endClaim()
		}
	}
	w.look()
	a := plan.Plan(w.state, w.now)
	warm := w.names(func(b *box) bool { return b.Phase == plan.Warm })
	if len(warm) != a.Desired {
		w.fail("P2: %d sandboxes are warm in the end, desired %d: %+v", len(warm), a.Desired, w.state)
	}
	if len(w.boxes) != len(warm) {
		w.fail("I4: %d sandboxes are left beside the warm ones", len(w.boxes)-len(warm))
	}
	if a.Problem != (plan.Problem{}) {
		w.fail("a settled pool still has a problem: %+v", a.Problem)
	}
}

// TestHistories asserts I1, I2, I3, I4, I9 and case P5 on random histories.
func TestHistories(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, uint64(seed))
			for range 400 {
				w.step()
			}
			w.settle()
		})
	}
}
