package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Plan decides what the pool in state s does at the time now.
func Plan(s State, now time.Time) Actions {
	p := planner{s: &s, now: now}
	var fall time.Time
	p.out.Desired, p.out.Memory, fall = s.Size.desired(now)
	p.wake(fall)
	p.out.Backoff = s.Backoff.settled(&s, now)
	p.sort()
	p.bind()
	p.retireBroken()
	p.resize()
	p.out.Quiet = p.quiet()
	p.deleteUsed()
	if !p.out.Quiet {
		p.create()
	}
	p.out.Problem = p.problem()
	return p.out
}

// planner is one decision in the making. Its lists hold what may still be
// decided about; a step removes what it has decided.
type planner struct {
	s   *State
	now time.Time
	out Actions

	waiting []Claim
	// fresh sandboxes are as they should be, stale ones are to be replaced.
	freshWarm, staleWarm       []*Sandbox
	freshWarming, staleWarming []*Sandbox
	failed                     []*Sandbox
	// used are those whose claim has ended.
	used []*Sandbox
	// total counts every sandbox that exists or is being created.
	total int
}

// Older orders sandboxes by their age, the oldest first. In this order they are
// retired, and claimed by whom the plan serves and by claimants on a cluster, who
// pick one themselves: none grows old in the pool.
func Older(a, b *Sandbox) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

// sort puts the sandboxes and claims into the lists, the oldest first, and
// deletes what can be deleted without asking anyone.
func (p *planner) sort() {
	sorted := make([]*Sandbox, len(p.s.Sandboxes))
	for i := range p.s.Sandboxes {
		sorted[i] = &p.s.Sandboxes[i]
	}
	slices.SortFunc(sorted, Older)
	for _, x := range sorted {
		p.place(x)
	}
	p.total = len(sorted) + p.s.Creating

	for _, c := range p.s.Waiting {
		if !c.Deadline.IsZero() && !p.now.Before(c.Deadline) {
			continue // whoever keeps the claim ends it
		}
		p.wake(c.Deadline)
		p.waiting = append(p.waiting, c)
	}
	slices.SortFunc(p.waiting, func(a, b Claim) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}

func (p *planner) place(x *Sandbox) {
	if x.Ending {
		return
	}
	other := x.Revision != p.s.Revision && p.s.Strategy != OnReplenish
	switch x.Phase {
	case Retired:
		p.out.Delete = append(p.out.Delete, x.Name)
	case Claimed:
		if x.Over {
			p.used = append(p.used, x)
		}
	case Failed:
		p.failed = append(p.failed, x)
	case Warming:
		switch {
		case p.due(x, p.s.WarmTimeout):
			p.failed = append(p.failed, x)
		case other:
			p.staleWarming = append(p.staleWarming, x)
		default:
			p.freshWarming = append(p.freshWarming, x)
		}
	case Warm:
		if p.due(x, p.s.MaxAge) || other {
			p.staleWarm = append(p.staleWarm, x)
		} else {
			p.freshWarm = append(p.freshWarm, x)
		}
	}
}

// due reports whether x has reached an age, and else wakes the pool then.
func (p *planner) due(x *Sandbox, age time.Duration) bool {
	if age <= 0 {
		return false
	}
	at := x.Created.Add(age)
	if !p.now.Before(at) {
		return true
	}
	p.wake(at)
	return false
}

// bind serves the claims in order of creation, with fresh sandboxes first and
// in the order of Older.
func (p *planner) bind() {
	for len(p.waiting) > 0 {
		from := &p.freshWarm
		if len(*from) == 0 {
			from = &p.staleWarm
		}
		if len(*from) == 0 {
			return
		}
		p.out.Bind = append(p.out.Bind, Binding{Claim: p.waiting[0].Name, Sandbox: (*from)[0].Name})
		p.waiting, *from = p.waiting[1:], (*from)[1:]
	}
}

// retireBroken retires what will never be of use, and counts failures.
func (p *planner) retireBroken() {
	p.retire(p.staleWarming)
	p.retire(p.failed)
	for _, x := range p.failed {
		problem := x.Problem
		if problem == (Problem{}) {
			problem = Problem{Reason: ReasonSandboxFailed, Message: fmt.Sprintf("sandbox %s ended before it was claimed", x.Name)}
			if x.Phase == Warming {
				problem = Problem{Reason: ReasonWarmTimeout, Message: fmt.Sprintf("sandbox %s was not warm after %s", x.Name, p.s.WarmTimeout)}
			}
		}
		// One that has lived long says nothing about the next.
		if x.Revision == p.s.Revision && (x.Phase == Warming || p.now.Sub(x.Created) < youth) {
			p.out.Backoff = p.out.Backoff.Failed(p.s.Revision, problem, p.now)
		}
	}
}

// want is how many fresh sandboxes there should be.
func (p *planner) want() int { return p.out.Desired + len(p.waiting) }

// fresh is how many there are or will be.
func (p *planner) fresh() int { return len(p.freshWarm) + len(p.freshWarming) + p.s.Creating }

// resize retires stale sandboxes as the strategy allows, and surplus ones.
func (p *planner) resize() {
	available := len(p.freshWarm) + len(p.staleWarm)
	floor := p.out.Desired - max(p.s.MaxUnavailable, 0)
	if p.total >= p.s.Limit && p.s.Creating == 0 && len(p.freshWarming) == 0 {
		// New ones cannot come first when there is no room for any.
		floor = min(floor, p.out.Desired-1)
	}
	if p.s.Strategy == Recreate {
		floor = 0
	}
	n := max(0, min(len(p.staleWarm), available-max(floor, 0)))
	p.retire(p.staleWarm[:n])
	p.staleWarm = p.staleWarm[n:]

	// Of the surplus, those that are of no use yet go first, the newest of
	// them first; then the oldest warm ones.
	surplus := p.fresh() - p.want()
	for ; surplus > 0 && len(p.freshWarming) > 0; surplus-- {
		last := len(p.freshWarming) - 1
		p.retire(p.freshWarming[last:])
		p.freshWarming = p.freshWarming[:last]
	}
	// Creations under way cannot be taken back: they are not a reason to
	// retire a sandbox that is warm already.
	n = max(0, min(surplus, len(p.freshWarm), len(p.freshWarm)-p.want()))
	p.retire(p.freshWarm[:n])
	p.freshWarm = p.freshWarm[n:]
}

// create fills up what is missing, within every bound.
func (p *planner) create() {
	missing := p.want() - p.fresh()
	if missing <= 0 || p.s.Paused != (Problem{}) {
		return
	}
	inFlight := len(p.freshWarming) + p.s.Creating
	bound := p.s.MaxCreating - inFlight
	if b := p.out.Backoff; b.Failures > 0 {
		if until := b.until(); p.now.Before(until) {
			p.wake(until)
			return
		}
		// One probe tells whether the failure is over.
		bound = min(bound, 1-inFlight)
	}
	p.out.Create = max(0, min(missing, bound, p.s.Limit-p.total))
}

// maxPutOff is how long a sandbox is kept after its claim's end while others run.
const maxPutOff = 2 * time.Second

// deleteUsed deletes the sandboxes whose claims have ended, in a quiet period
// those that have been put off for long enough.
func (p *planner) deleteUsed() {
	for _, x := range p.used {
		if due := x.OverSince.Add(maxPutOff); p.out.Quiet && (x.OverSince.IsZero() || p.now.Before(due)) {
			p.wake(due)
			continue
		}
		p.out.Delete = append(p.out.Delete, x.Name)
	}
}

// quiet reports whether all that takes processors is to wait, see State.Lull.
func (p *planner) quiet() bool {
	if len(p.waiting) > 0 || len(p.staleWarm) > 0 || len(p.freshWarm) < max(1, p.out.Desired/2) {
		return false
	}
	var until time.Time
	for _, x := range p.s.Sandboxes {
		if at := x.ClaimedAt.Add(p.s.Lull); x.Phase == Claimed && !x.Ending && !x.Over && at.After(until) {
			until = at
		}
	}
	if !p.now.Before(until) {
		return false
	}
	p.wake(until)
	return true
}

func (p *planner) problem() Problem {
	if p.s.Paused != (Problem{}) {
		return p.s.Paused
	}
	if len(p.freshWarm) >= p.want() {
		return Problem{}
	}
	if p.out.Backoff.Failures > 0 {
		return p.out.Backoff.Problem
	}
	for _, x := range p.freshWarming {
		if x.Problem != (Problem{}) {
			return x.Problem
		}
	}
	if p.fresh()+p.out.Create < p.want() && p.total+p.out.Create >= p.s.Limit {
		return Problem{Reason: ReasonAtLimit, Message: fmt.Sprintf("%d sandboxes exist and the limit is %d", p.total, p.s.Limit)}
	}
	return Problem{}
}

func (p *planner) retire(list []*Sandbox) {
	for _, x := range list {
		p.out.Retire = append(p.out.Retire, x.Name)
	}
}

func (p *planner) wake(at time.Time) {
	if at.After(p.now) && (p.out.Wake.IsZero() || at.Before(p.out.Wake)) {
		p.out.Wake = at
	}
}
