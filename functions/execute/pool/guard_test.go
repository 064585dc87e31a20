package pool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// lax is a pool of one sandbox that lets its caller do anything, and counts it.
type lax struct {
	pool.Pool
	pool.Sandbox
	refuses        error
	runs, releases atomic.Int32
	// released ends the runs.
	released chan struct{}
}

func (l *lax) Claim(context.Context, pool.Claim) (pool.Sandbox, error) {
	if l.refuses != nil {
		return nil, l.refuses
	}
	return laxSandbox{l}, nil
}

type laxSandbox struct{ *lax }

func (laxSandbox) Name() string { return "one" }
func (laxSandbox) Pool() string { return "lax" }
func (laxSandbox) Queued() bool { return true }

func (s laxSandbox) Run(context.Context, pool.Run, pool.Sink) (pool.Outcome, error) {
	s.runs.Add(1)
	<-s.released
	return pool.Outcome{ExitCode: 7}, nil
}

func (s laxSandbox) Release() {
	if s.releases.Add(1) == 1 {
		close(s.released)
	}
}

func guarded(t *testing.T) (*lax, pool.Sandbox) {
	t.Helper()
	l := &lax{released: make(chan struct{})}
	s, err := pool.Guard(l).Claim(t.Context(), pool.Claim{})
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

func TestGuardPassesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := guarded(t)
		if s.Name() != "one" || s.Pool() != "lax" || !s.Queued() {
			t.Errorf("the sandbox is %s of %s, queued %v", s.Name(), s.Pool(), s.Queued())
		}
		end := make(chan int, 1)
		go func() {
			outcome, err := s.Run(t.Context(), pool.Run{}, nil)
			if err != nil {
				t.Error(err)
			}
			end <- outcome.ExitCode
		}()
		synctest.Wait() // it runs
		s.Release()
		if code := <-end; code != 7 || l.releases.Load() != 1 {
			t.Errorf("exit code %d, %d releases", code, l.releases.Load())
		}
		l.refuses = pool.ErrOverQuota
		if s, err := pool.Guard(l).Claim(t.Context(), pool.Claim{}); s != nil || !errors.Is(err, pool.ErrOverQuota) {
			t.Errorf("a refused claim yields %v, %v", s, err)
		}
	})
}

func TestGuardRefusesUseAfterRelease(t *testing.T) {
	l, s := guarded(t)
	s.Release()
	s.Release()
	if _, err := s.Run(t.Context(), pool.Run{}, nil); !errors.Is(err, pool.ErrReleased) {
		t.Errorf("a run after the release: %v", err)
	}
	if l.runs.Load() != 0 || l.releases.Load() != 1 {
		t.Errorf("%d runs and %d releases passed", l.runs.Load(), l.releases.Load())
	}
}

// However many callers try at once, one run and one release pass.
func TestGuardLetsOnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 20
		l, s := guarded(t)
		var refused atomic.Int32
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				_, err := s.Run(t.Context(), pool.Run{}, nil)
				if errors.Is(err, pool.ErrUsed) {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // one runs, the others have been refused
		for range callers {
			all.Go(s.Release)
		}
		all.Wait()
		if l.runs.Load() != 1 || refused.Load() != callers-1 || l.releases.Load() != 1 {
			t.Errorf("%d runs and %d releases passed, %d runs were refused", l.runs.Load(), l.releases.Load(), refused.Load())
		}
	})
}
