package local

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/lease"
)

// interruptGrace is how long a program that was interrupted may go on before
// its runner kills it.
const interruptGrace = 2 * time.Second

// session is an open session. lease is under Pool.mu.
type session struct {
	owner   *Pool
	sandbox *sandbox
	keeper  Keeper
	kept    Kept
	info    pool.SessionInfo
	// ctx ends with the session; its cause says why.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// used gets something when a use has ended.
	used chan struct{}

	lease lease.Lease
}

var _ pool.Session = (*session)(nil)

// watch ends the session when its time has come, and when its sandbox is gone.
func (s *session) watch() {
	for {
		s.owner.mu.Lock()
		at, reason := s.lease.Next()
		s.owner.mu.Unlock()
		timer := time.NewTimer(time.Until(at))
		select {
		case <-s.ctx.Done():
			timer.Stop()
			return
		case <-s.kept.Done():
			s.gone()
		case <-s.used:
		case <-timer.C:
			s.endIfDue(reason)
		}
		timer.Stop()
	}
}

// endIfDue ends the session unless somebody has begun to use it.
func (s *session) endIfDue(reason execution.SessionEnd) {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	if at, now := s.lease.Next(); now == reason && !time.Now().Before(at) {
		s.owner.end(s, reason)
	}
}

// gone ends the session whose sandbox has ended.
func (s *session) gone() {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	s.owner.end(s, byItself(s.lease, time.Now()))
}

// use begins a use of the session, during which it is not idle: the context is
// that of what is done, and done ends it.
func (s *session) use(ctx context.Context) (context.Context, func(), error) {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, nil, context.Cause(s.ctx)
	}
	s.lease.Begin()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, sync.OnceFunc(func() {
		stop()
		cancel(nil)
		s.owner.mu.Lock()
		defer s.owner.mu.Unlock()
		s.lease.End(time.Now())
		select {
		case s.used <- struct{}{}:
		default:
		}
	}), nil
}

// explain is err, or the session's end where that is behind it.
func (s *session) explain(err error) error {
	var ended *pool.SessionEndedError
	if err == nil {
		return nil
	}
	if errors.Is(err, pool.ErrSandboxLost) || errors.As(err, &ended) {
		s.gone() // if it is not over for another reason
	}
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	return err
}

// do does something that is a use of the session.
func (s *session) do(ctx context.Context, f func(context.Context) error) error {
	ctx, done, err := s.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.explain(f(ctx))
}

// Info implements pool.Session.
func (s *session) Info() pool.SessionInfo { return s.info }

// Status implements pool.Session. It is no use: who only looks does not keep the
// session alive.
func (s *session) Status(ctx context.Context) (pool.SessionStatus, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	status, err := s.kept.Status(ctx)
	if err != nil {
		return pool.SessionStatus{}, s.explain(err)
	}
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	status.IdleLeft = s.lease.Left(time.Now())
	return status, nil
}

// Run implements pool.Session. What outlives its limit is ended from outside, as
// in a sandbox of one run.
func (s *session) Run(ctx context.Context, id string, run pool.Run, sink pool.Sink) (pool.SessionOutcome, error) {
	ctx, done, err := s.use(ctx)
	if err != nil {
		return pool.SessionOutcome{}, err
	}
	defer done()
	if err := s.keeper.Prioritize(); err != nil {
		s.owner.log.Warn("A session's program has a low priority", "sandbox", s.info.Sandbox, "error", err)
	}
	began, kills := time.Now(), s.keeper.OOMKills()
	started := make(chan struct{})
	stop := s.sandbox.watch(ctx, run.Limits.Timeout+interruptGrace, started)
	outcome, err := s.kept.Run(ctx, id, run, &startSink{Sink: sink, started: started})
	ended := stop()
	kills = s.keeper.OOMKills() - kills
	if err == nil {
		if wasKilled(outcome.Outcome) {
			outcome.Outcome = whoKilled(outcome.Outcome, ended, kills)
		}
		return outcome, nil
	}
	err = s.explain(err)
	var over *pool.SessionEndedError
	if errors.As(err, &over) && over.Reason == execution.SessionSandboxLost {
		// The run has an outcome; the next one learns of the session's end.
		switch lost := (pool.SessionOutcome{State: execution.SessionLost}); {
		case kills > 0:
			lost.Outcome = runnerKilled(kills, time.Since(began))
			return lost, nil
		case ended:
			lost.Outcome = runnerEnded(time.Since(began))
			return lost, nil
		}
	}
	return pool.SessionOutcome{}, err
}

// Interrupt implements pool.Session.
func (s *session) Interrupt(ctx context.Context) error { return s.do(ctx, s.kept.Interrupt) }

// Files implements pool.Session.
func (s *session) Files(ctx context.Context, most int) (files []pool.SessionFile, more bool, err error) {
	err = s.do(ctx, func(ctx context.Context) error {
		files, more, err = s.kept.Files(ctx, most)
		return err
	})
	return files, more, err
}

// Open implements pool.Session.
func (s *session) Open(ctx context.Context, path string, offset, length int64) (pool.SessionFile, io.ReadCloser, error) {
	ctx, done, err := s.use(ctx)
	if err != nil {
		return pool.SessionFile{}, nil, err
	}
	f, content, err := s.kept.Open(ctx, path, offset, length)
	if err != nil {
		done()
		return pool.SessionFile{}, nil, s.explain(err)
	}
	return f, &transfer{ReadCloser: content, done: done}, nil
}

// Archive implements pool.Session.
func (s *session) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	ctx, done, err := s.use(ctx)
	if err != nil {
		return nil, err
	}
	archive, err := s.kept.Archive(ctx, path)
	if err != nil {
		done()
		return nil, s.explain(err)
	}
	return &transfer{ReadCloser: archive, done: done}, nil
}

// transfer is a use of the session until it is closed.
type transfer struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (t *transfer) Close() error {
	defer t.done()
	return t.ReadCloser.Close()
}

// Write implements pool.Session.
func (s *session) Write(ctx context.Context, path string, content io.Reader) (f pool.SessionFile, created bool, err error) {
	err = s.do(ctx, func(ctx context.Context) error {
		f, created, err = s.kept.Write(ctx, path, content)
		return err
	})
	return f, created, err
}

// Remove implements pool.Session.
func (s *session) Remove(ctx context.Context, path string) error {
	return s.do(ctx, func(ctx context.Context) error { return s.kept.Remove(ctx, path) })
}
