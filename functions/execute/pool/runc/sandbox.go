package runc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/remote"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/plan"
)

// sandbox is one sandbox of a pool. planned and the right to destroy the
// container are under Pool.mu; a claimed container is its claimant's to use.
type sandbox struct {
	owner     *Pool
	pool      *warmPool
	planned   plan.Sandbox
	container *container // nil while warming
	queued    bool
	released  sync.Once
}

var _ pool.Sandbox = (*sandbox)(nil)

func (s *sandbox) Name() string { return s.planned.Name }
func (s *sandbox) Pool() string { return s.pool.config.Name }

// Queued implements pool.Sandbox.
func (s *sandbox) Queued() bool { return s.queued }

// claim makes the sandbox somebody's own. mu is held.
func (s *sandbox) claim() { s.planned.Phase, s.planned.ClaimedAt = plan.Claimed, time.Now() }

// Run implements pool.Sandbox.
func (s *sandbox) Run(ctx context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
	containers := s.owner.containers
	// Nothing depends on it if the sandbox is gone by then.
	long := time.AfterFunc(longAfter, func() { _ = containers.setShares(s.Name(), sharesLong) })
	defer long.Stop()
	if run.Limits.Memory > 0 {
		if err := containers.setMemory(s.Name(), run.Limits.Memory); err != nil {
			return pool.Outcome{}, err
		}
	}
	began := time.Now()
	outcome, err := remote.Run(ctx, s.container.wire, "", run, sink)
	var failure *wire.Failure
	var invalid *pool.InvalidError
	if err == nil || errors.As(err, &failure) || errors.As(err, &invalid) {
		return outcome, err
	}
	if kills := containers.oomKills(s.Name()); kills > 0 {
		return runnerKilled(kills, time.Since(began)), nil
	}
	if ctx.Err() != nil {
		return pool.Outcome{}, err
	}
	return pool.Outcome{}, fmt.Errorf("%w: %w", pool.ErrSandboxLost, err)
}

// runnerKilled is how a program ended whose runner was killed for memory, and
// could not say so itself.
func runnerKilled(kills int64, after time.Duration) pool.Outcome {
	return pool.Outcome{
		Status: execution.StatusOutOfMemory, ExitCode: 128 + int(unix.SIGKILL), Signal: "SIGKILL", Run: after,
		Usage: execution.Usage{OOMKills: kills, WallMS: float64(after.Microseconds()) / 1000},
		Notes: []string{"the whole sandbox was killed at the memory limit; its files are lost"},
	}
}

// answerFirst is how long a sandbox outlives its release, so that the answer
// is on its way before the processors are busy with what it leaves behind.
const answerFirst = 3 * time.Millisecond

// Release implements pool.Sandbox. The processes are dead a moment after it;
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
			select {
			case <-p.ctx.Done():
			case <-time.After(answerFirst):
			}
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
	if s.container != nil {
		s.destroy(p)
	} // else create does it, when there is something to destroy
}

// destroy removes the container in the background. mu is held.
func (s *sandbox) destroy(p *Pool) {
	s.container.kill()
	p.work.Go(func() {
		if err := p.remove(s); err != nil {
			// The next start sweeps it; until then it counts as existing.
			p.log.Error("A sandbox could not be removed", "pool", s.Pool(), "sandbox", s.Name(), "error", err)
			p.metrics.leaks.WithLabelValues(s.Pool()).Inc()
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(s.pool.sandboxes, s.Name())
		p.step()
	})
}

// remove destroys what is left of a sandbox, with some patience: the kernel
// may still be busy with it.
func (p *Pool) remove(s *sandbox) error {
	const tries = 5
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), destroyTimeout)
		err := p.containers.destroy(ctx, s.container)
		cancel()
		if err == nil || try == tries {
			return err
		}
		time.Sleep(pause)
		pause *= 3
	}
}
