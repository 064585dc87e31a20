package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/internal/plan"
)

// world is the simple model: what exists in truth, and who did what to it.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	now   time.Time
	next  int
	state plan.State
	// boxes is the truth; state.Sandboxes is what the pool last saw of it.
	boxes  map[string]*box
	claims map[string]*claim
	// broken makes creations fail or sandboxes never become warm.
	broken   bool
	creating int
	log      []string
}

type box struct {
	plan.Sandbox
	// owners are the claims that ever won it.
	owners []string
	state  string // what the compare-and-set works on: warm, claimed, retired
}

type claim struct {
	plan.Claim
	sandbox string
	over    bool
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		boxes: map[string]*box{}, claims: map[string]*claim{},
	}
	w.state = plan.State{
		Size: plan.Size{Replicas: w.rnd.IntN(6)}, Revision: "r0", Limit: 6 + w.rnd.IntN(10),
		MaxCreating: 1 + w.rnd.IntN(4), MaxUnavailable: w.rnd.IntN(3),
		MaxAge: time.Duration(w.rnd.IntN(2)) * 10 * time.Minute, WarmTimeout: 5 * time.Minute,
		Lull:     time.Duration(w.rnd.IntN(2)) * 20 * time.Second,
		Strategy: []plan.Strategy{"", plan.Rolling, plan.OnReplenish, plan.Recreate}[w.rnd.IntN(4)],
	}
	return w
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("04:05 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-40):] {
		w.t.Log(l)
	}
	w.t.Fatalf(format, args...)
}

// names returns the names of boxes in a fixed order, so that a seed repeats.
func (w *world) names(keep func(*box) bool) []string {
	var out []string
	for n, b := range w.boxes {
		if keep(b) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) pick(keep func(*box) bool) *box {
	names := w.names(keep)
	if len(names) == 0 {
		return nil
	}
	return w.boxes[names[w.rnd.IntN(len(names))]]
}

// look refreshes what the pool sees.
func (w *world) look() {
	w.state.Sandboxes, w.state.Waiting, w.state.Creating = nil, nil, w.creating
	for _, n := range w.names(func(*box) bool { return true }) {
		w.state.Sandboxes = append(w.state.Sandboxes, w.boxes[n].Sandbox)
	}
	for _, c := range w.claims {
		if c.sandbox == "" && !c.over {
			w.state.Waiting = append(w.state.Waiting, c.Claim)
		}
	}
}

// win is the compare-and-set that claims and retirement both go through.
func (w *world) win(name, to string) bool {
	b := w.boxes[name]
	if b == nil || b.state != "warm" {
		return false
	}
	b.state = to
	return true
}

func (w *world) claim(name string, c *claim) {
	b := w.boxes[name]
	if !w.win(name, "claimed") {
		w.note("claim %s lost %s", c.Name, name)
		return
	}
	b.Phase, b.ClaimedAt, b.owners = plan.Claimed, w.now, append(b.owners, c.Name)
	c.sandbox = name
	if len(b.owners) > 1 {
		w.fail("I1/I2: sandbox %s was claimed by %v", name, b.owners)
	}
}

// plan makes one decision on what the pool sees and carries out part of it.
func (w *world) plan() plan.Actions {
	a := plan.Plan(w.state, w.now)
	w.checkActions(a)
	w.state.Size.Memory, w.state.Backoff = a.Memory, a.Backoff
	done := func() bool { return w.rnd.IntN(8) > 0 }
	for _, b := range a.Bind {
		if c := w.claims[b.Claim]; done() && c != nil && !c.over && c.sandbox == "" {
			w.claim(b.Sandbox, c)
		}
	}
	for _, n := range a.Retire {
		if done() && w.win(n, "retired") {
			w.boxes[n].Phase = plan.Retired
			w.note("retired %s", n)
		}
	}
	for _, n := range a.Delete {
		if done() {
			w.destroy(n)
		}
	}
	for _, c := range w.claims {
		if c.sandbox == "" && !w.now.Before(c.Deadline) {
			c.over = true
		}
	}
	w.creating += a.Create
	return a
}

func (w *world) destroy(name string) {
	b := w.boxes[name]
	if b == nil {
		return
	}
	if b.state == "warm" {
		w.fail("I3: %s was deleted without being retired", name)
	}
	if b.state == "claimed" && !w.claims[b.owners[0]].over {
		w.fail("I3: claimed sandbox %s was deleted", name)
	}
	w.note("deleted %s", name)
	delete(w.boxes, name)
}

// checkActions checks what must hold of every decision, on any state.
func (w *world) checkActions(a plan.Actions) {
	w.t.Helper()
	seen := map[string]bool{}
	phase := map[string]plan.Sandbox{}
	for _, x := range w.state.Sandboxes {
		phase[x.Name] = x
	}
	once := func(n string) {
		if seen[n] {
			w.fail("I2: %s appears twice in %+v", n, a)
		}
		seen[n] = true
	}
	for _, b := range a.Bind {
		once(b.Sandbox)
		once(b.Claim)
		if x := phase[b.Sandbox]; x.Phase != plan.Warm || x.Ending {
			w.fail("I1: bound %s, which is %s", b.Sandbox, x.Phase)
		}
	}
	for _, n := range a.Retire {
		once(n)
		if p := phase[n].Phase; p == plan.Claimed || p == plan.Retired {
			w.fail("I3: retires %s, which is %s", n, p)
		}
	}
	for _, n := range a.Delete {
		once(n)
		if x := phase[n]; x.Phase != plan.Retired && !(x.Phase == plan.Claimed && x.Over) {
			w.fail("I3: deletes %s, which is %s", n, x.Phase)
		}
	}
	w.checkCreate(a)
	w.checkCapacity(a)
}

func (w *world) checkCreate(a plan.Actions) {
	w.t.Helper()
	warming := w.state.Creating
	for _, x := range w.state.Sandboxes {
		if x.Phase == plan.Warming && !x.Ending && x.Revision == w.state.Revision {
			warming++
		}
	}
	switch total := len(w.state.Sandboxes) + w.state.Creating; {
	case a.Create < 0:
		w.fail("I9: creates %d", a.Create)
	case a.Create > 0 && total+a.Create > w.state.Limit:
		w.fail("I9: %d exist, creates %d, limit %d", total, a.Create, w.state.Limit)
	case a.Create > 0 && warming+a.Create > w.state.MaxCreating:
		w.fail("I9: %d are warming, creates %d, at most %d at once", warming, a.Create, w.state.MaxCreating)
	case a.Create > 0 && a.Backoff.Failures > 0 && warming+a.Create > 1:
		w.fail("I9: creates %d beside %d after a failure", a.Create, warming)
	}
}

// checkCapacity checks P5: replacing never takes more warm sandboxes away
// than the pool can spare.
func (w *world) checkCapacity(a plan.Actions) {
	w.t.Helper()
	if w.state.Strategy == plan.Recreate {
		return
	}
	warm, retired := -len(a.Bind), 0
	for _, x := range w.state.Sandboxes {
		if x.Phase != plan.Warm || x.Ending {
			continue
		}
		warm++
		if slices.Contains(a.Retire, x.Name) {
			retired++
		}
	}
	spare := max(w.state.MaxUnavailable, 0)
	if len(w.state.Sandboxes)+w.state.Creating >= w.state.Limit {
		spare = max(spare, 1)
	}
	if retired > 0 && warm-retired < a.Desired-spare {
		w.fail("P5: of %d warm sandboxes %d are retired, desired %d, spare %d", warm, retired, a.Desired, spare)
	}
}
