package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/lease"
)

var _ pool.Sessions = (*Pool)(nil)

// runnerGrace is how much later than here a runner ends its session by itself,
// and a sandbox whose session was not ended here.
const runnerGrace = 5 * time.Second

// OpenSession implements pool.Sessions.
func (p *Pool) OpenSession(ctx context.Context, want pool.SessionClaim) (pool.Session, error) {
	if b, ok := p.backend.(SessionBackend); !ok || !b.KeepsSessions() {
		return nil, pool.ErrNoSessions
	}
	wp, err := p.reserve(want)
	if err != nil {
		return nil, err
	}
	s, err := p.keepSession(ctx, wp, want)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		wp.sessions--
		return nil, err
	}
	return s, nil
}

// reserve takes a place for a session, in the pool that it will be of.
func (p *Pool) reserve(want pool.SessionClaim) (*warmPool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wp, err := p.choose(want.Claim)
	if err != nil {
		return nil, err
	}
	all := 0
	for _, each := range p.pools {
		all += each.sessions
	}
	if all >= p.config.MaxSessions || wp.sessions >= p.config.MaxPoolSessions {
		return nil, fmt.Errorf("%w: %d in all, %d in pool %s", pool.ErrTooManySessions, all, wp.sessions, wp.config.Name)
	}
	wp.sessions++
	return wp, nil
}

// keepSession claims a sandbox of wp and opens the session in it.
func (p *Pool) keepSession(ctx context.Context, wp *warmPool, want pool.SessionClaim) (*session, error) {
	claim := want.Claim
	claim.Pool, claim.Deadline = wp.config.Name, want.Deadline.Add(runnerGrace)
	sandbox, err := p.get(ctx, claim)
	if err != nil {
		return nil, err
	}
	keeper, ok := sandbox.instance.(Keeper)
	if !ok {
		sandbox.Release()
		return nil, pool.ErrNoSessions
	}
	now := time.Now()
	info := pool.SessionInfo{
		ID: want.Session, Language: want.Language, Pool: wp.config.Name, Sandbox: sandbox.Name(), Opened: now, Expires: want.Deadline, Idle: want.Idle,
	}
	theirs := want
	theirs.Idle, theirs.Deadline = want.Idle+runnerGrace, claim.Deadline
	kept, err := keeper.Keep(ctx, info, theirs)
	if err != nil {
		sandbox.Release()
		return nil, fmt.Errorf("opening a session in sandbox %s: %w", sandbox.Name(), err)
	}
	s := &session{owner: p, sandbox: sandbox, keeper: keeper, kept: kept, info: info, used: make(chan struct{}, 1)}
	s.lease = lease.Lease{Expires: info.Expires, Idle: info.Idle, LastUse: now}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		s.cancel(pool.ErrClosed)
		sandbox.end(p)
		return nil, pool.ErrClosed
	}
	p.open[info.ID] = s
	p.work.Go(s.watch)
	return s, nil
}

// end ends a session, once. mu is held.
func (p *Pool) end(s *session, reason execution.SessionEnd) {
	if p.open[s.info.ID] != s {
		return
	}
	delete(p.open, s.info.ID)
	p.ended.add(s.info.ID, reason, time.Now())
	s.sandbox.pool.sessions--
	p.metrics.sessionsEnded.WithLabelValues(s.info.Pool, string(reason)).Inc()
	p.log.Info("Session ended", "pool", s.info.Pool, "sandbox", s.info.Sandbox, "reason", reason)
	s.cancel(&pool.SessionEndedError{Reason: reason})
	s.sandbox.end(p)
	p.step()
}

// Session implements pool.Sessions.
func (p *Pool) Session(_ context.Context, id string) (pool.Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.open[id]; s != nil {
		return s, nil
	}
	return nil, p.missing(id)
}

// missing is why there is no session of that id. mu is held.
func (p *Pool) missing(id string) error {
	if reason, ok := p.ended.find(id, time.Now()); ok {
		return &pool.SessionEndedError{Reason: reason}
	}
	return pool.ErrNoSession
}

// Sessions implements pool.Sessions.
func (p *Pool) Sessions(context.Context) ([]pool.SessionInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]pool.SessionInfo, 0, len(p.open))
	for _, s := range p.open {
		list = append(list, s.info)
	}
	slices.SortFunc(list, func(a, b pool.SessionInfo) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// EndSession implements pool.Sessions.
func (p *Pool) EndSession(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.open[id]; s != nil {
		p.end(s, execution.SessionClosed)
		return nil
	}
	if _, ended := p.ended.find(id, time.Now()); ended {
		return nil
	}
	return pool.ErrNoSession
}
