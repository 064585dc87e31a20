package local

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/pause"
	"github.com/preheat-dev/preheat/internal/plan"
)

const (
	// longAfter is longer than most programs take: one that runs for longer no
	// longer comes before others.
	longAfter = 500 * time.Millisecond
	// limitGrace is how long after its time limit a program may still have
	// processes before they are ended from outside. The runner, which ends
	// them at the limit itself, may have been starved by them.
	limitGrace = time.Second
	// startTimeout is how long the runner may take to report the start: a
	// program may have begun, and starved the runner, before that.
	startTimeout = 3 * time.Second
	// endTimeout bounds one try to end a program from outside.
	endTimeout = 3 * time.Second
	// answerFirst is how long a sandbox outlives its release, so that the answer
	// is on its way before the processors are busy with what it leaves behind.
	answerFirst = 3 * time.Millisecond
)

// sandbox is one sandbox of a pool. planned, failure and the right to destroy
// the instance are under Pool.mu; a claimed instance is its claimant's to use.
type sandbox struct {
	owner    *Pool
	pool     *warmPool
	planned  plan.Sandbox
	instance Instance // nil while warming
	// failure is why the last try to destroy it failed.
	failure  error
	queued   bool
	released sync.Once
	// expiry ends it at its claim's deadline.
	expiry *time.Timer
}

var _ pool.Sandbox = (*sandbox)(nil)

// Name implements pool.Sandbox.
func (s *sandbox) Name() string { return s.planned.Name }

// Pool implements pool.Sandbox.
func (s *sandbox) Pool() string { return s.pool.config.Name }

// Queued implements pool.Sandbox.
func (s *sandbox) Queued() bool { return s.queued }

// claim makes the sandbox somebody's own until the deadline, if there is one.
// mu is held.
func (s *sandbox) claim(deadline time.Time) {
	now := time.Now()
	s.planned.Phase, s.planned.ClaimedAt = plan.Claimed, now
	if !deadline.IsZero() {
		s.expiry = time.AfterFunc(deadline.Sub(now), s.expire)
	}
}

// expire ends a sandbox that nobody has released in time.
func (s *sandbox) expire() {
	p := s.owner
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.planned.Ending {
		p.log.Warn("A sandbox ends at its claim's deadline", "pool", s.Pool(), "sandbox", s.Name())
		s.end(p)
		p.step()
	}
}

// Run implements pool.Sandbox.
func (s *sandbox) Run(ctx context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
	if run.Limits.Memory > 0 {
		if err := s.instance.SetMemory(run.Limits.Memory); err != nil {
			return pool.Outcome{}, err
		}
	}
	began := time.Now()
	started := make(chan struct{})
	stop := s.watch(ctx, run.Limits.Timeout, started)
	outcome, err := s.instance.Run(ctx, run, &startSink{Sink: sink, started: started})
	ended := stop()
	switch {
	case err == nil && wasKilled(outcome):
		return whoKilled(outcome, ended, s.instance.OOMKills()), nil
	case err == nil:
		return outcome, nil
	case !errors.Is(err, pool.ErrSandboxLost):
		return outcome, err
	}
	if kills := s.instance.OOMKills(); kills > 0 {
		return runnerKilled(kills, time.Since(began)), nil
	}
	if ended && !s.instance.Alive() {
		return runnerEnded(time.Since(began)), nil
	}
	return pool.Outcome{}, err
}

// startSink closes a channel when the program has started.
type startSink struct {
	pool.Sink
	started chan struct{}
	once    sync.Once
}

// Started implements pool.Sink.
func (s *startSink) Started() {
	s.once.Do(func() { close(s.started) })
	s.Sink.Started()
}

// watch lowers the priority of a program that runs for long, and ends one that
// has outlived its limit. It goes on until stop, which reports whether it has
// ended the program.
func (s *sandbox) watch(ctx context.Context, limit time.Duration, started <-chan struct{}) (stop func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	var ended bool
	var watching sync.WaitGroup
	watching.Go(func() {
		silence := time.NewTimer(startTimeout)
		defer silence.Stop()
		select {
		case <-ctx.Done():
			return
		case <-started:
		case <-silence.C:
		}
		if !pause.For(ctx, longAfter) {
			return
		}
		if err := s.instance.Deprioritize(); err != nil && ctx.Err() == nil {
			s.owner.log.Warn("A long program keeps its priority", "sandbox", s.Name(), "error", err)
		}
		for wait := limit + limitGrace - longAfter; pause.For(ctx, wait); wait = limitGrace {
			ended = s.endProgram(ctx) || ended
		}
	})
	return func() bool {
		cancel()
		watching.Wait()
		return ended
	}
}

// endProgram ends the program from outside, and reports whether there was one.
func (s *sandbox) endProgram(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	ended, err := s.instance.EndProgram(ctx)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		s.owner.log.Error("A program could not be ended at its time limit", "sandbox", s.Name(), "error", err)
	}
	return ended
}

// wasKilled says that all the runner saw of a program's end is that it was killed.
func wasKilled(o pool.Outcome) bool {
	return o.Status == execution.StatusFailed && o.ExitCode == 128+int(unix.SIGKILL)
}

// whoKilled is how such a program ended, seen from outside: at its time limit, or
// at a memory limit that its runner cannot see.
func whoKilled(o pool.Outcome, ended bool, kills int64) pool.Outcome {
	if ended {
		o.Status = execution.StatusTimedOut
		return o
	}
	if kills > 0 {
		o.Status, o.Usage.OOMKills = execution.StatusOutOfMemory, kills
	}
	return o
}

// runnerKilled is how a program ended whose runner was killed for memory, and
// could not say so itself.
func runnerKilled(kills int64, after time.Duration) pool.Outcome {
	o := pool.Killed(execution.StatusOutOfMemory, after, "the whole sandbox was killed at the memory limit; its files are lost, and its processor time is not known")
	o.Usage.OOMKills = kills
	return o
}

// runnerEnded is how a program ended that was ended at its time limit together
// with its runner.
func runnerEnded(after time.Duration) pool.Outcome {
	return pool.Killed(execution.StatusTimedOut, after, "the whole sandbox was killed at the time limit; its files are lost")
}

// Release implements pool.Sandbox. The processes are killed a moment after it;
// what is left of the sandbox goes in the background.
func (s *sandbox) Release() {
	s.released.Do(func() {
		p := s.owner
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.closing || len(s.pool.waiting) > 0 {
			s.end(p)
			p.step()
			return
		}
		p.work.Go(func() {
			pause.For(p.ctx, answerFirst)
			p.mu.Lock()
			defer p.mu.Unlock()
			s.end(p)
			p.step()
		})
	})
}

// end begins the destruction, once. mu is held.
func (s *sandbox) end(p *Pool) {
	if s.planned.Ending {
		return
	}
	s.planned.Ending = true
	if s.expiry != nil {
		s.expiry.Stop()
	}
	if s.instance != nil {
		s.destroy(p)
	} // else create does it, when there is something to destroy
}
