package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// KeepsSessions implements SessionBackend.
func (f *fake) KeepsSessions() bool { return f.turn != nil }

// Keep implements Keeper.
func (i *instance) Keep(_ context.Context, info pool.SessionInfo, _ pool.SessionClaim) (Kept, error) {
	return &kept{instance: i, info: info, done: make(chan struct{})}, i.fake.keep
}

// Prioritize implements Keeper.
func (i *instance) Prioritize() error {
	i.fake.mu.Lock()
	defer i.fake.mu.Unlock()
	i.deprioritized = 0
	return nil
}

// kept is a session in an instance, whose runs are fake.turn's.
type kept struct {
	pool.Session
	instance *instance
	info     pool.SessionInfo
	done     chan struct{}
}

func (k *kept) Done() <-chan struct{} { return k.done }
func (k *kept) Status(context.Context) (pool.SessionStatus, error) {
	return pool.SessionStatus{Sequence: 1}, nil
}
func (k *kept) Run(ctx context.Context, _ string, _ pool.Run, sink pool.Sink) (pool.SessionOutcome, error) {
	return k.instance.fake.turn(ctx, k, sink)
}
func (k *kept) Open(context.Context, string, int64, int64) (pool.SessionFile, io.ReadCloser, error) {
	return pool.SessionFile{}, io.NopCloser(strings.NewReader("content")), nil
}

// keptState is the outcome of a run that kept everything.
var keptState = pool.SessionOutcome{Outcome: pool.Outcome{Status: execution.StatusSucceeded}, State: execution.SessionKept}

func succeed(context.Context, *kept, pool.Sink) (pool.SessionOutcome, error) { return keptState, nil }

// open opens session n, idle for a minute and alive for ten.
func open(t *testing.T, p *Pool, n int) (*session, error) {
	t.Helper()
	s, err := p.OpenSession(t.Context(), pool.SessionClaim{
		Claim:   pool.Claim{Language: "python", Deadline: time.Now().Add(10 * time.Minute)},
		Session: id(n), Idle: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	return s.(*session), nil
}

func mustOpen(t *testing.T, p *Pool, n int) *session {
	t.Helper()
	s, err := open(t, p, n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func id(n int) string { return fmt.Sprintf("%026d", n) }

// ended checks that a session is over, for this reason.
func ended(t *testing.T, p *Pool, n int, want execution.SessionEnd) {
	t.Helper()
	synctest.Wait()
	_, err := p.Session(t.Context(), id(n))
	var over *pool.SessionEndedError
	if !errors.As(err, &over) || over.Reason != want {
		t.Errorf("session %d: %v, not %s", n, err, want)
	}
}

var sessionsConfig = Config{MaxSessions: 3, MaxPoolSessions: 2}

func run(t *testing.T, s *session) (pool.SessionOutcome, error) {
	t.Helper()
	return s.Run(t.Context(), "run", pool.Run{Limits: pool.Limits{Timeout: 30 * time.Second}}, nothing{})
}

// A session ends when it was idle, and not while it is used: neither by a run
// nor by a transfer that goes on (I4).
func TestSessionsEndWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{turn: func(context.Context, *kept, pool.Sink) (pool.SessionOutcome, error) {
			time.Sleep(2 * time.Minute)
			return keptState, nil
		}}
		p := start(t, f, sessionsConfig)
		defer finish(t, p)
		s := mustOpen(t, p, 1)
		if _, err := run(t, s); err != nil {
			t.Fatal(err)
		}
		_, content, err := s.Open(t.Context(), "f", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		_ = content.Close()
		time.Sleep(59 * time.Second)
		if st, err := s.Status(t.Context()); err != nil || st.IdleLeft != time.Second {
			t.Errorf("%+v, %v", st, err)
		}
		count(t, p, 2, 0, 1)
		time.Sleep(time.Second)
		ended(t, p, 1, execution.SessionIdle)
		count(t, p, 2, 0, 0)
	})
}

// A session ends at the end of its lifetime from outside, whatever runs in it (I4).
func TestSessionsEndAtTheirLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{turn: func(ctx context.Context, _ *kept, _ pool.Sink) (pool.SessionOutcome, error) {
			<-ctx.Done()
			return pool.SessionOutcome{}, context.Cause(ctx)
		}}
		p := start(t, f, sessionsConfig)
		defer finish(t, p)
		_, err := run(t, mustOpen(t, p, 1))
		var over *pool.SessionEndedError
		if !errors.As(err, &over) || over.Reason != execution.SessionExpired {
			t.Errorf("the run returned %v", err)
		}
		ended(t, p, 1, execution.SessionExpired)
		count(t, p, 2, 0, 0)
	})
}

// Whoever comes back later learns why, for an hour.
func TestEndsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, &fake{turn: succeed}, sessionsConfig)
		mustOpen(t, p, 1)
		lost := mustOpen(t, p, 2)
		if err := p.EndSession(t.Context(), id(1)); err != nil {
			t.Fatal(err)
		}
		ended(t, p, 1, execution.SessionClosed)
		if err := p.EndSession(t.Context(), id(1)); err != nil {
			t.Errorf("ending it again: %v", err)
		}
		close(lost.kept.(*kept).done)
		ended(t, p, 2, execution.SessionSandboxLost)
		time.Sleep(59 * time.Minute)
		ended(t, p, 1, execution.SessionClosed)
		time.Sleep(time.Minute)
		if _, err := p.Session(t.Context(), id(1)); !errors.Is(err, pool.ErrNoSession) {
			t.Errorf("after an hour: %v", err)
		}
		if err := p.EndSession(t.Context(), id(3)); !errors.Is(err, pool.ErrNoSession) {
			t.Errorf("ending one that never was: %v", err)
		}
		mustOpen(t, p, 4)
		finish(t, p)
		ended(t, p, 4, execution.SessionShutdown)
	})
}

// As many sessions are open as may be, a failed one counts no longer, and an idle
// one is not ended for another.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{turn: succeed, keep: errFake}
		p := start(t, f, sessionsConfig)
		defer finish(t, p)
		for range 5 {
			if _, err := open(t, p, 1); !errors.Is(err, errFake) {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		f.keep = nil
		mustOpen(t, p, 1)
		mustOpen(t, p, 2)
		if _, err := open(t, p, 3); !errors.Is(err, pool.ErrTooManySessions) {
			t.Errorf("the third: %v", err)
		}
		if list, err := p.Sessions(t.Context()); err != nil || len(list) != 2 || list[0].ID != id(1) {
			t.Errorf("%+v, %v", list, err)
		}
		if err := p.EndSession(t.Context(), id(1)); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, p, 3)
	})
}

// A program that its runner does not end is ended from outside, and the session
// goes on; one that takes its sandbox along has an outcome all the same.
func TestRunsInSessionsAreEndedFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{turn: func(_ context.Context, k *kept, sink pool.Sink) (pool.SessionOutcome, error) {
			sink.Started()
			i := k.instance
			i.fake.mu.Lock()
			i.hasProgram = true
			i.fake.mu.Unlock()
			<-i.endings
			return pool.SessionOutcome{Outcome: killedOutcome, State: execution.SessionLost}, nil
		}}
		p := start(t, f, sessionsConfig)
		defer finish(t, p)
		s := mustOpen(t, p, 1)
		if o, err := run(t, s); err != nil || o.Status != execution.StatusTimedOut || o.State != execution.SessionLost {
			t.Errorf("%+v, %v", o, err)
		}
		f.turn = succeed
		if o, err := run(t, s); err != nil || o.State != execution.SessionKept || s.keeper.(*instance).deprioritized != 0 {
			t.Errorf("the next run: %+v, %v", o, err)
		}
		f.turn = func(_ context.Context, k *kept, _ pool.Sink) (pool.SessionOutcome, error) {
			k.instance.oomKills++
			return pool.SessionOutcome{}, pool.ErrSandboxLost
		}
		if o, err := run(t, s); err != nil || o.Status != execution.StatusOutOfMemory || o.State != execution.SessionLost {
			t.Errorf("out of memory: %+v, %v", o, err)
		}
		ended(t, p, 1, execution.SessionSandboxLost)
	})
}

func TestBackendWithoutSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, &fake{}, sessionsConfig)
		defer finish(t, p)
		if _, err := open(t, p, 1); !errors.Is(err, pool.ErrNoSessions) {
			t.Error(err)
		}
		count(t, p, 2, 0, 0)
	})
}

// What is remembered of ends is bounded in number.
func TestEndsAreBounded(t *testing.T) {
	var e ends
	now := time.Unix(0, 0)
	for n := range rememberMost + 10 {
		e.add(id(n), execution.SessionIdle, now)
	}
	if _, ok := e.find(id(9), now); ok || len(e.reasons) != rememberMost || len(e.order) != rememberMost {
		t.Errorf("%d are remembered", len(e.reasons))
	}
	if reason, ok := e.find(id(10), now); !ok || reason != execution.SessionIdle {
		t.Errorf("the oldest: %q", reason)
	}
}
