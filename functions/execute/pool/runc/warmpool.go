package runc

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/plan"
)

// destroyTimeout bounds one try to remove a sandbox.
const destroyTimeout = 30 * time.Second

// warmPool is the state of one pool, under Pool.mu.
type warmPool struct {
	config    PoolConfig
	state     plan.State
	sandboxes map[string]*sandbox
	waiting   []*waiter // in order of arrival
	desired   int
	problem   plan.Problem
	// served says that a sandbox has been warm once.
	served bool
	// timer calls step when the plan asks for it.
	timer *time.Timer
}

// waiter is a claim in line. got yields its sandbox, or nil at the end.
type waiter struct {
	pool  *warmPool
	claim plan.Claim
	got   chan *sandbox
}

// step plans every pool and begins what the plans say. mu is held.
func (p *Pool) step() {
	for _, wp := range p.pools {
		if !p.closing {
			p.stepPool(wp)
		}
		p.metrics.observe(wp)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Pool) stepPool(wp *warmPool) {
	now := time.Now()
	s := wp.state
	for _, x := range wp.sandboxes {
		s.Sandboxes = append(s.Sandboxes, x.planned)
	}
	for _, w := range wp.waiting {
		s.Waiting = append(s.Waiting, w.claim)
	}
	do := plan.Plan(s, now)
	wp.state.Backoff, wp.state.Size.Memory = do.Backoff, do.Memory
	wp.desired, wp.problem = do.Desired, do.Problem

	for _, b := range do.Bind {
		wp.bind(b)
	}
	for _, name := range slices.Concat(do.Retire, do.Delete) {
		wp.sandboxes[name].end(p)
	}
	for range do.Create {
		p.create(wp)
	}
	if wp.timer != nil {
		wp.timer.Stop()
		wp.timer = nil
	}
	if !do.Wake.IsZero() {
		wp.timer = time.AfterFunc(do.Wake.Sub(now), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.step()
		})
	}
}

// bind gives a warm sandbox to the claim that waited for it.
func (wp *warmPool) bind(b plan.Binding) {
	i := slices.IndexFunc(wp.waiting, func(w *waiter) bool { return w.claim.Name == b.Claim })
	w := wp.waiting[i]
	wp.waiting = slices.Delete(wp.waiting, i, i+1)
	s := wp.sandboxes[b.Sandbox]
	s.claim()
	w.got <- s
}

// create begins to make a sandbox. mu is held.
func (p *Pool) create(wp *warmPool) {
	now := time.Now()
	name := wp.config.Name + "-" + suffix()
	s := &sandbox{owner: p, pool: wp, planned: plan.Sandbox{Name: name, Phase: plan.Warming, Created: now}}
	wp.sandboxes[name] = s
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.config.WarmTimeout)
		c, err := p.containers.create(ctx, wp.config, name)
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case err != nil:
			if p.ctx.Err() == nil {
				p.log.Error("A sandbox could not be made", "pool", wp.config.Name, "error", err)
			}
			delete(wp.sandboxes, name)
			wp.state.Backoff = wp.state.Backoff.Failed("", plan.Problem{Reason: "CreateFailed", Message: err.Error()}, time.Now())
		case s.planned.Ending:
			s.container = c
			s.destroy(p)
		default:
			s.container = c
			s.planned.Phase = plan.Warm
			wp.served = true
			p.metrics.refill.WithLabelValues(wp.config.Name).Observe(time.Since(now).Seconds())
		}
		p.step()
	})
}

// suffix is what makes a sandbox's name its own: 40 random bits.
func suffix() string { return strings.ToLower(rand.Text()[:8]) }

// warmest is the warm sandbox to claim next: the latest, whose memory is most
// likely still in the processors' caches. One that has died is not handed out.
func (wp *warmPool) warmest() *sandbox {
	var latest *sandbox
	for _, s := range wp.sandboxes {
		if s.planned.Phase == plan.Warm && !s.planned.Ending && (latest == nil || s.planned.Created.After(latest.planned.Created)) {
			latest = s
		}
	}
	if latest != nil && !latest.container.alive() {
		latest.planned.Phase = plan.Failed
		return wp.warmest()
	}
	return latest
}

// findDead marks the warm sandboxes that have ended.
func (wp *warmPool) findDead() {
	for _, s := range wp.sandboxes {
		if s.planned.Phase == plan.Warm && !s.planned.Ending && !s.container.alive() {
			s.planned.Phase = plan.Failed
		}
	}
}

// counts is how many sandboxes are in which phase, without those that end.
func (wp *warmPool) counts() map[plan.Phase]int {
	n := map[plan.Phase]int{}
	for _, s := range wp.sandboxes {
		if !s.planned.Ending {
			n[s.planned.Phase]++
		}
	}
	return n
}

func (wp *warmPool) status() execution.PoolStatus {
	n := wp.counts()
	st := execution.PoolStatus{
		Name: wp.config.Name, Languages: wp.config.Languages, Desired: wp.desired,
		Warm: n[plan.Warm], Warming: n[plan.Warming], Claimed: n[plan.Claimed],
		Waiting: len(wp.waiting), Problem: wp.problem.Message, Sandboxes: []execution.SandboxStatus{},
	}
	states := map[plan.Phase]string{
		plan.Warm: execution.SandboxWarm, plan.Claimed: execution.SandboxClaimed, plan.Warming: execution.SandboxWarming,
	}
	for name, s := range wp.sandboxes {
		if s.planned.Ending {
			continue
		}
		st.Sandboxes = append(st.Sandboxes, execution.SandboxStatus{Name: name, State: states[s.planned.Phase]})
	}
	slices.SortFunc(st.Sandboxes, func(a, b execution.SandboxStatus) int { return cmp.Compare(a.Name, b.Name) })
	return st
}
