package plan_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/internal/plan"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

func box1(name string, phase plan.Phase, created int) plan.Sandbox {
	return plan.Sandbox{Name: name, Phase: phase, Revision: "r", Created: at(created)}
}

func claimedAt(x plan.Sandbox, seconds int) plan.Sandbox { x.ClaimedAt = at(seconds); return x }

func stale(x plan.Sandbox) plan.Sandbox { x.Revision = "before"; return x }

func TestPlan(t *testing.T) {
	base := plan.State{Size: plan.Size{Replicas: 2}, Revision: "r", Limit: 10, MaxCreating: 3, WarmTimeout: time.Minute}
	tests := map[string]struct {
		change func(*plan.State)
		want   plan.Actions
	}{
		"an empty pool fills up": {
			change: func(*plan.State) {},
			want:   plan.Actions{Create: 2},
		},
		"creations under way count": {
			change: func(s *plan.State) { s.Creating = 1 },
			want:   plan.Actions{Create: 1},
		},
		"claims are served in order, the oldest sandbox first, and replaced": {
			change: func(s *plan.State) {
				s.Sandboxes = []plan.Sandbox{box1("new", plan.Warm, 2), box1("old", plan.Warm, 1)}
				s.Waiting = []plan.Claim{{Name: "second", Created: at(9)}, {Name: "first", Created: at(8)}, {Name: "third", Created: at(10)}}
			},
			want: plan.Actions{Bind: []plan.Binding{{Claim: "first", Sandbox: "old"}, {Claim: "second", Sandbox: "new"}}, Create: 3},
		},
		"a claim whose time is over is not served": {
			change: func(s *plan.State) {
				s.Sandboxes = []plan.Sandbox{box1("a", plan.Warm, 1), box1("b", plan.Warm, 1)}
				s.Waiting = []plan.Claim{{Name: "late", Created: at(0), Deadline: at(10)}}
			},
			want: plan.Actions{},
		},
		"a roll-out creates first": {
			change: func(s *plan.State) {
				s.Sandboxes = []plan.Sandbox{stale(box1("a", plan.Warm, 1)), stale(box1("b", plan.Warm, 2))}
			},
			want: plan.Actions{Create: 2},
		},
		"a roll-out retires what it may": {
			change: func(s *plan.State) {
				s.MaxUnavailable = 1
				s.Sandboxes = []plan.Sandbox{stale(box1("a", plan.Warm, 1)), stale(box1("b", plan.Warm, 2))}
			},
			want: plan.Actions{Create: 2, Retire: []string{"a"}},
		},
		"a roll-out at the limit makes room": {
			change: func(s *plan.State) {
				s.Limit = 2
				s.Sandboxes = []plan.Sandbox{stale(box1("a", plan.Warm, 1)), stale(box1("b", plan.Warm, 2))}
			},
			want: plan.Actions{Retire: []string{"a"}, Problem: plan.Problem{Reason: plan.ReasonAtLimit, Message: "2 sandboxes exist and the limit is 2"}},
		},
		"a roll-out ends": {
			change: func(s *plan.State) {
				s.Sandboxes = []plan.Sandbox{stale(box1("a", plan.Warm, 1)), stale(box1("b", plan.Warm, 2)), box1("c", plan.Warm, 3), box1("d", plan.Warm, 3)}
			},
			want: plan.Actions{Retire: []string{"a", "b"}},
		},
		"on replenish, old sandboxes stay": {
			change: func(s *plan.State) {
				s.Strategy = plan.OnReplenish
				s.Sandboxes = []plan.Sandbox{stale(box1("a", plan.Warm, 1)), stale(box1("b", plan.Warm, 2))}
			},
			want: plan.Actions{},
		},
		"a smaller size retires what is of no use yet, then the oldest": {
			change: func(s *plan.State) {
				s.Size.Replicas = 1
				s.Sandboxes = []plan.Sandbox{box1("a", plan.Warm, 1), box1("b", plan.Warm, 2), box1("c", plan.Warming, 3), box1("d", plan.Claimed, 0)}
			},
			want: plan.Actions{Retire: []string{"c", "a"}},
		},
		"what is retired or over is deleted, what is ending is left": {
			change: func(s *plan.State) {
				over, ending := box1("b", plan.Claimed, 1), box1("c", plan.Retired, 1)
				over.Over, ending.Ending = true, true
				s.Size.Replicas = 0
				s.Sandboxes = []plan.Sandbox{box1("a", plan.Retired, 1), over, ending, box1("d", plan.Claimed, 1)}
			},
			want: plan.Actions{Delete: []string{"a", "b"}},
		},
		"an old sandbox is replaced, the new one first": {
			change: func(s *plan.State) {
				s.MaxAge = 15 * time.Second
				s.Sandboxes = []plan.Sandbox{box1("a", plan.Warm, 1), box1("b", plan.Warm, 10)}
			},
			want: plan.Actions{Create: 1, Wake: at(25)},
		},
		"a program that has just begun is left in peace": {
			change: func(s *plan.State) {
				s.Lull = 5 * time.Second
				s.Sandboxes = []plan.Sandbox{claimedAt(box1("a", plan.Claimed, 1), 18), box1("b", plan.Warm, 2)}
			},
			want: plan.Actions{Wake: at(23), Quiet: true},
		},
		"as long as any of several runs": {
			change: func(s *plan.State) {
				s.Lull, s.Size.Replicas = 5*time.Second, 4
				over := claimedAt(box1("a", plan.Claimed, 1), 17)
				over.Over = true
				s.Sandboxes = []plan.Sandbox{
					over, claimedAt(box1("b", plan.Claimed, 1), 16), claimedAt(box1("c", plan.Claimed, 1), 18),
					box1("d", plan.Warm, 2), box1("e", plan.Warm, 2),
				}
			},
			want: plan.Actions{Wake: at(23), Quiet: true},
		},
		"but not with less than half a pool": {
			change: func(s *plan.State) {
				s.Lull, s.Size.Replicas = 5*time.Second, 4
				over := claimedAt(box1("a", plan.Claimed, 1), 17)
				over.Over = true
				s.Sandboxes = []plan.Sandbox{over, claimedAt(box1("b", plan.Claimed, 1), 16), claimedAt(box1("c", plan.Claimed, 1), 18), box1("d", plan.Warm, 2)}
			},
			want: plan.Actions{Create: 3, Delete: []string{"a"}},
		},
		"nor during a roll-out": {
			change: func(s *plan.State) {
				s.Lull = 5 * time.Second
				s.Sandboxes = []plan.Sandbox{claimedAt(box1("a", plan.Claimed, 1), 18), box1("b", plan.Warm, 2), stale(box1("c", plan.Warm, 1))}
			},
			want: plan.Actions{Create: 1},
		},
		"but not for long": {
			change: func(s *plan.State) {
				s.Lull = 5 * time.Second
				s.Sandboxes = []plan.Sandbox{claimedAt(box1("a", plan.Claimed, 1), 15), box1("b", plan.Warm, 2)}
			},
			want: plan.Actions{Create: 1},
		},
		"and not when no other sandbox is warm": {
			change: func(s *plan.State) {
				s.Lull = 5 * time.Second
				s.Sandboxes = []plan.Sandbox{claimedAt(box1("a", plan.Claimed, 1), 18), claimedAt(box1("b", plan.Claimed, 2), 19)}
			},
			want: plan.Actions{Create: 2},
		},
		"nor when it has ended": {
			change: func(s *plan.State) {
				s.Lull = 5 * time.Second
				ended := claimedAt(box1("a", plan.Claimed, 1), 18)
				ended.Ending = true
				s.Sandboxes = []plan.Sandbox{ended, box1("b", plan.Warm, 2)}
			},
			want: plan.Actions{Create: 1},
		},
		"no template, no creation": {
			change: func(s *plan.State) { s.Paused = plan.Problem{Reason: "TemplateNotFound"} },
			want:   plan.Actions{Problem: plan.Problem{Reason: "TemplateNotFound"}},
		},
		"after a failure nothing is created for a while": {
			change: func(s *plan.State) {
				s.Backoff = plan.Backoff{}.Failed("r", plan.Problem{Reason: "QuotaExceeded"}, at(20))
			},
			want: plan.Actions{Wake: at(21), Problem: plan.Problem{Reason: "QuotaExceeded"}, Backoff: plan.Backoff{Failures: 1, Last: at(20), Revision: "r", Problem: plan.Problem{Reason: "QuotaExceeded"}}},
		},
		"then one at a time": {
			change: func(s *plan.State) {
				s.Backoff = plan.Backoff{}.Failed("r", plan.Problem{Reason: "QuotaExceeded"}, at(19))
			},
			want: plan.Actions{Create: 1, Problem: plan.Problem{Reason: "QuotaExceeded"}, Backoff: plan.Backoff{Failures: 1, Last: at(19), Revision: "r", Problem: plan.Problem{Reason: "QuotaExceeded"}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := base
			test.change(&s)
			test.want.Desired = s.Size.Replicas
			if test.want.Wake.IsZero() {
				test.want.Wake = wakeOf(s)
			}
			if got := plan.Plan(s, at(20)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("Plan =\n%+v, want\n%+v", got, test.want)
			}
		})
	}
}

// wakeOf is when the first sandbox that still warms is given up.
func wakeOf(s plan.State) (first time.Time) {
	for _, x := range s.Sandboxes {
		if x.Phase == plan.Warming && !x.Ending {
			first = x.Created.Add(s.WarmTimeout)
		}
	}
	return first
}

// A template that cannot be made is tried ever more rarely (I9).
func TestBackoffGrows(t *testing.T) {
	s := plan.State{Size: plan.Size{Replicas: 5}, Revision: "r", Limit: 10, MaxCreating: 5}
	now, tries := t0, 0
	for now.Before(t0.Add(time.Hour)) {
		a := plan.Plan(s, now)
		s.Backoff = a.Backoff
		if a.Create > 0 {
			tries++
			s.Backoff = s.Backoff.Failed("r", plan.Problem{Reason: "QuotaExceeded"}, now)
			a = plan.Plan(s, now)
		}
		if a.Wake.IsZero() {
			t.Fatal("a pool that backs off has to wake up again")
		}
		now = a.Wake
	}
	// After 1, 2, 4, 8 and 16 seconds, and then each half minute.
	if want := 6 + (3600-31)/30; tries != want {
		t.Errorf("%d tries in an hour, want %d", tries, want)
	}
	s.Revision = "fixed"
	if a := plan.Plan(s, now); a.Create != 5 {
		t.Errorf("a new revision creates %d, want 5", a.Create)
	}
}

func TestStaffing(t *testing.T) {
	tests := []struct {
		rate   float64
		refill time.Duration
		want   int
	}{
		{0, time.Second, 1}, {1, time.Second, 3}, {4, time.Second, 8}, {9, time.Second, 15},
		{0.1, 2500 * time.Millisecond, 2}, {100, time.Second, 20},
	}
	for _, test := range tests {
		s := plan.State{Limit: 100, MaxCreating: 100, Size: plan.Size{Autoscale: &plan.Autoscale{Min: 1, Max: 20, Rate: test.rate, Refill: test.refill}}}
		if got := plan.Plan(s, t0).Desired; got != test.want {
			t.Errorf("λ=%v L=%v: desired %d, want %d", test.rate, test.refill, got, test.want)
		}
	}
}

// An autoscaled pool rises at once, falls slowly, and never passes its maximum.
func TestAutoscaleRisesFastAndFallsSlowly(t *testing.T) {
	a := &plan.Autoscale{Min: 1, Max: 10, Rate: 4, Refill: time.Second}
	s := plan.State{Limit: 100, MaxCreating: 100, Size: plan.Size{Autoscale: a}}
	now := t0
	decide := func() int {
		out := plan.Plan(s, now)
		s.Size.Memory = out.Memory
		return out.Desired
	}
	if got := decide(); got != 8 {
		t.Fatalf("desired %d, want 8 at once", got)
	}
	a.Rate = 0
	var sizes []int
	for range 9 {
		sizes = append(sizes, decide())
		now = now.Add(15 * time.Second)
	}
	if want := []int{8, 7, 6, 5, 4, 3, 2, 1, 1}; !reflect.DeepEqual(sizes, want) {
		t.Errorf("falls as %v, want %v", sizes, want)
	}
	a.Rate = 1e9
	if got := decide(); got != 10 {
		t.Errorf("desired %d, want the maximum 10", got)
	}
}

func TestMeter(t *testing.T) {
	var m plan.Meter
	now := t0
	if m.Rate(now) != 0 || m.Refill() != 0 {
		t.Fatal("a new meter has measured something")
	}
	for range 2000 {
		now = now.Add(250 * time.Millisecond)
		m.Claimed(now)
	}
	if r := m.Rate(now); r < 3.8 || r > 4.2 {
		t.Errorf("rate %v, want 4", r)
	}
	if r := m.Rate(now.Add(30 * time.Second)); r < 1.9 || r > 2.1 {
		t.Errorf("rate %v a half-life later, want 2", r)
	}
	for i := range 100 {
		m.Refilled(time.Duration(i+1) * time.Millisecond)
	}
	if l := m.Refill(); l != 97*time.Millisecond {
		t.Errorf("p95 of the last 64 of 100 = %v, want 97ms", l)
	}
}
