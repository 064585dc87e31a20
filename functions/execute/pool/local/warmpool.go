package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/plan"
)

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
	// sessions counts those that are open or being opened.
	sessions int
}

// waiter is a claim in line. got yields its sandbox, or nil at the end.
type waiter struct {
	pool     *warmPool
	claim    plan.Claim
	deadline time.Time // of the sandbox
	got      chan *sandbox
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
	wp.stopTimer()
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
	s.claim(w.deadline)
	w.got <- s
}

func (wp *warmPool) stopTimer() {
	if wp.timer != nil {
		wp.timer.Stop()
		wp.timer = nil
	}
}

// create begins to make a sandbox. mu is held.
func (p *Pool) create(wp *warmPool) {
	now := time.Now()
	name := wp.config.Name + "-" + suffix()
	s := &sandbox{owner: p, pool: wp, planned: plan.Sandbox{Name: name, Phase: plan.Warming, Created: now}}
	wp.sandboxes[name] = s
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, p.config.WarmTimeout)
		defer cancel()
		instance, err := p.backend.Create(ctx, wp.config, name)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.created(s, instance, err)
		p.step()
	})
}

// created takes what the backend has made for s. mu is held.
func (p *Pool) created(s *sandbox, instance Instance, err error) {
	s.instance = instance
	switch {
	case err != nil:
		p.creationFailed(s, err)
	case s.planned.Ending:
		s.destroy(p)
	default:
		s.planned.Phase = plan.Warm
		s.pool.served = true
		p.metrics.refill.WithLabelValues(s.Pool()).Observe(time.Since(s.planned.Created).Seconds())
	}
}

// creationFailed counts the failure. What is left of the sandbox is destroyed
// like any other; it counts until then. mu is held.
func (p *Pool) creationFailed(s *sandbox, err error) {
	if p.ctx.Err() == nil {
		p.log.Error("A sandbox could not be made", "pool", s.Pool(), "error", err)
	}
	problem := plan.Problem{Reason: "CreateFailed", Message: err.Error()}
	if errors.Is(err, ErrNoCapacity) {
		problem.Reason = plan.ReasonAtLimit
	}
	s.pool.state.Backoff = s.pool.state.Backoff.Failed("", problem, time.Now())
	if s.instance == nil {
		delete(s.pool.sandboxes, s.Name())
		return
	}
	s.planned.Ending = true
	s.destroy(p)
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
	if latest != nil && !latest.instance.Alive() {
		latest.planned.Phase = plan.Failed
		return wp.warmest()
	}
	return latest
}

// findDead marks the warm sandboxes that have ended.
func (wp *warmPool) findDead() {
	for _, s := range wp.sandboxes {
		if s.planned.Phase == plan.Warm && !s.planned.Ending && !s.instance.Alive() {
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
