// Package local keeps warm pools of sandboxes on this machine. It implements
// pool.Pool over a Backend, which makes the sandboxes.
//
// A sandbox counts against its pool's maximum from the moment it is begun until
// nothing of it is left: destruction goes on until it succeeds (I4, I9).
package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/plan"
)

const (
	// checkEvery is how often warm sandboxes are checked for being alive.
	checkEvery = time.Second
	// closeTimeout bounds the destruction of sandboxes once the pool closes.
	closeTimeout = 20 * time.Second
	// backendGrace is how long a backend may go on after its context's end.
	backendGrace = 5 * time.Second
)

// Pool is the warm pools of this machine. Its state changes under mu only;
// after every change step asks plan what to do and begins to do it.
type Pool struct {
	config  Config
	backend Backend
	log     *slog.Logger
	metrics *Metrics

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	// destroying ends when Close no longer waits for destructions.
	destroying context.Context
	giveUp     context.CancelCauseFunc
	work       sync.WaitGroup // creations, destructions and the keeper

	mu      sync.Mutex
	pools   []*warmPool
	open    map[string]*session // by their ids
	ended   ends
	changed chan struct{}
	closing bool
}

var _ pool.Pool = (*Pool)(nil)

// New begins to fill the pools. Close must be called before the backend is
// closed.
func New(c Config, b Backend, m *Metrics, log *slog.Logger) (*Pool, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Pool{config: c, backend: b, log: log, metrics: m, changed: make(chan struct{}), open: map[string]*session{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.destroying, p.giveUp = context.WithCancelCause(context.Background())
	for _, pc := range c.Pools {
		p.pools = append(p.pools, &warmPool{config: pc, state: c.state(pc), sandboxes: map[string]*sandbox{}})
	}
	p.work.Go(p.keep)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step()
	return p, nil
}

// keep looks after warm sandboxes until Close.
func (p *Pool) keep() {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-t.C:
			p.mu.Lock()
			for _, wp := range p.pools {
				wp.findDead()
			}
			p.step()
			p.mu.Unlock()
		}
	}
}

var errClosing = errors.New("the pool does not wait for it any longer")

// Close ends every sandbox and waits until nothing of them is left, for a
// bounded time. Sandboxes that are still claimed lose their programs. The error
// names the sandboxes that could not be removed.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closing = true
	for _, s := range p.open {
		p.end(s, execution.SessionShutdown)
	}
	for _, wp := range p.pools {
		for _, s := range wp.sandboxes {
			s.end(p)
		}
		for _, w := range wp.waiting {
			w.got <- nil
		}
		wp.waiting = nil
		wp.stopTimer()
	}
	p.mu.Unlock()
	p.cancel()
	limit := time.AfterFunc(p.config.WarmTimeout+closeTimeout, func() { p.giveUp(errClosing) })
	defer limit.Stop()
	done := make(chan struct{})
	go func() { // it outlives Close only if the backend does not keep its promise
		p.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-p.destroying.Done():
		select {
		case <-done:
		case <-time.After(backendGrace):
		}
	}
	p.giveUp(nil)
	return p.left()
}

// left is an error that names the sandboxes that exist, if any.
func (p *Pool) left() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var problems []error
	for _, wp := range p.pools {
		for _, name := range slices.Sorted(maps.Keys(wp.sandboxes)) {
			problems = append(problems, fmt.Errorf("sandbox %s could not be removed: %w", name, wp.sandboxes[name].failure))
		}
	}
	return errors.Join(problems...)
}

// Claim implements pool.Pool.
func (p *Pool) Claim(ctx context.Context, want pool.Claim) (pool.Sandbox, error) {
	began := time.Now()
	s, err := p.get(ctx, want)
	if err != nil {
		return nil, err
	}
	path := "fast"
	if s.queued {
		path = "slow"
	}
	p.metrics.claim.WithLabelValues(path).Observe(time.Since(began).Seconds())
	return s, nil
}

// get claims a warm sandbox or waits for one.
func (p *Pool) get(ctx context.Context, want pool.Claim) (*sandbox, error) {
	w, s, err := p.claimOrWait(want)
	if err != nil || s != nil {
		return s, err
	}
	select {
	case s := <-w.got:
		if s == nil {
			return nil, pool.ErrClosed
		}
		s.queued = true
		return s, nil
	case <-ctx.Done():
		s, why := p.abandon(w)
		if s != nil {
			s.Release()
		}
		return nil, fmt.Errorf("%w: %w", why, context.Cause(ctx))
	}
}

// claimOrWait claims a warm sandbox, or stands in line for one.
func (p *Pool) claimOrWait(want pool.Claim) (*waiter, *sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return nil, nil, pool.ErrClosed
	}
	wp, err := p.choose(want)
	if err != nil {
		return nil, nil, err
	}
	if len(wp.waiting) == 0 {
		if s := wp.warmest(); s != nil {
			s.claim(want.Deadline)
			p.step()
			return nil, s, nil
		}
	}
	w := &waiter{pool: wp, claim: plan.Claim{Name: rand.Text(), Created: time.Now()}, deadline: want.Deadline, got: make(chan *sandbox, 1)}
	wp.waiting = append(wp.waiting, w)
	p.metrics.misses.WithLabelValues(wp.config.Name).Inc()
	p.step()
	return w, nil, nil
}

// choose returns the pool for a claim: of those that qualify, the first with a
// warm sandbox, else the one with the shortest line.
func (p *Pool) choose(want pool.Claim) (*warmPool, error) {
	var best *warmPool
	named := want.Pool == ""
	for _, wp := range p.pools {
		if want.Pool != "" && wp.config.Name != want.Pool {
			continue
		}
		named = true
		if !slices.Contains(wp.config.Languages, want.Language) {
			continue
		}
		if len(wp.waiting) == 0 && wp.warmest() != nil {
			return wp, nil
		}
		if best == nil || len(wp.waiting) < len(best.waiting) {
			best = wp
		}
	}
	switch {
	case !named:
		return nil, fmt.Errorf("%w: %q", pool.ErrUnknownPool, want.Pool)
	case best == nil:
		return nil, fmt.Errorf("%w: %q", pool.ErrUnknownLanguage, want.Language)
	}
	return best, nil
}

// abandon leaves the line. It returns the sandbox that came too late, if any,
// and why none came in time: there were too few, or none can be made.
func (p *Pool) abandon(w *waiter) (*sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := pool.ErrNoSandbox
	if len(w.pool.sandboxes) == 0 && w.pool.problem != (plan.Problem{}) {
		why = pool.ErrClosed
	}
	select {
	case s := <-w.got:
		return s, why
	default:
	}
	w.pool.waiting = slices.DeleteFunc(w.pool.waiting, func(x *waiter) bool { return x == w })
	p.step()
	return nil, why
}

// Ready implements pool.Pool: every pool has, or has had, what it should have.
func (p *Pool) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return pool.ErrClosed
	}
	for _, wp := range p.pools {
		if !wp.served && wp.config.Size > 0 {
			return fmt.Errorf("pool %s has no warm sandbox yet%s", wp.config.Name, because(wp.problem))
		}
	}
	return nil
}

func because(problem plan.Problem) string {
	if problem == (plan.Problem{}) {
		return ""
	}
	return ": " + problem.Message
}

// Languages implements pool.Pool.
func (p *Pool) Languages() []execution.Language {
	list, _ := pool.MergeLanguages(p.config.describe())
	for i := range list {
		list[i].Version = p.backend.Version(list[i].Name)
	}
	return list
}

// Status implements pool.Pool.
func (p *Pool) Status() []execution.PoolStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]execution.PoolStatus, len(p.pools))
	for i, wp := range p.pools {
		list[i] = wp.status()
	}
	return list
}

// Changed implements pool.Pool.
func (p *Pool) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}
