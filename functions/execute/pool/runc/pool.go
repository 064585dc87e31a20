package runc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/plan"
)

// checkEvery is how often warm sandboxes are checked for being alive.
const checkEvery = time.Second

// Pool is the warm pools of this machine. Its state changes under mu only;
// after every change step asks plan what to do and begins to do it.
type Pool struct {
	config     Config
	image      Image
	containers *containers
	locked     *os.File
	log        *slog.Logger
	metrics    *Metrics

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // creations, destructions and the keeper

	mu      sync.Mutex
	pools   []*warmPool
	changed chan struct{}
	closing bool
}

var _ pool.Pool = (*Pool)(nil)

// New removes what an earlier process left, and begins to fill the pools.
func New(ctx context.Context, c Config, m *Metrics, log *slog.Logger) (*Pool, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := CheckRunc(ctx, c.Runc); err != nil {
		return nil, err
	}
	var err error
	if c.StateDir, err = makeStateDir(c.StateDir); err != nil {
		return nil, err
	}
	host, err := DetectHost()
	if err != nil {
		return nil, err
	}
	for _, weakness := range host.Weaker() {
		log.Warn("Sandboxes are weaker on this machine", "how", weakness)
	}
	image, err := LoadImage(c.Image)
	if err != nil {
		return nil, err
	}
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	locked, err := lock(c.StateDir)
	if err != nil {
		return nil, err
	}
	cs := newContainers(c, host, image)
	if err := sweep(ctx, cs.runc, c.StateDir, host); err != nil {
		return nil, errors.Join(err, locked.Close())
	}
	p := &Pool{config: c, image: image, containers: cs, locked: locked, log: log, metrics: m, changed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
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

// Close ends every sandbox and waits until nothing of them is left. Sandboxes
// that are still claimed lose their programs.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closing = true
	for _, wp := range p.pools {
		for _, s := range wp.sandboxes {
			s.end(p)
		}
		for _, w := range wp.waiting {
			w.got <- nil
		}
		wp.waiting = nil
	}
	p.mu.Unlock()
	p.cancel()
	p.work.Wait()
	var problems []error
	if p.containers.host.Cgroups {
		problems = append(problems, removeCgroups(p.config.StateDir, p.containers.host.Unified))
	}
	return errors.Join(append(problems, p.locked.Close())...)
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
			s.claim()
			p.step()
			return nil, s, nil
		}
	}
	w := &waiter{pool: wp, claim: plan.Claim{Name: rand.Text(), Created: time.Now()}, got: make(chan *sandbox, 1)}
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
	var list []execution.Language
	for _, pc := range p.config.Pools {
		for _, name := range pc.Languages {
			i := slices.IndexFunc(list, func(l execution.Language) bool { return l.Name == name })
			if i < 0 {
				i = len(list)
				list = append(list, execution.Language{Name: name, Version: p.image.Versions[name]})
			}
			list[i].Pools = append(list[i].Pools, pc.Name)
			list[i].Warm = list[i].Warm || slices.Contains(pc.Warm, name)
		}
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
