package local

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/preheat-dev/preheat/internal/pause"
)

const (
	// destroyTimeout bounds one try to remove a sandbox.
	destroyTimeout = 10 * time.Second
	// leakAfter is after how many failed tries a sandbox counts as leaked.
	leakAfter = 5
)

// destroy removes the instance in the background. It tries until nothing is
// left, or until the pool has waited long enough for it when it closes: what has
// processes counts as a sandbox, and nothing of it is given to another one. mu
// is held.
func (s *sandbox) destroy(p *Pool) {
	p.work.Go(func() {
		pauses := backoff.NewExponentialBackOff()
		pauses.InitialInterval, pauses.MaxInterval = 100*time.Millisecond, 30*time.Second
		for tries := 1; ; tries++ {
			ctx, cancel := context.WithTimeout(p.destroying, destroyTimeout)
			err := s.instance.Destroy(ctx)
			cancel()
			if err == nil {
				p.destroyed(s)
				return
			}
			p.destroyFailed(s, err, tries)
			if !pause.For(p.destroying, pauses.NextBackOff()) {
				return
			}
		}
	})
}

func (p *Pool) destroyed(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(s.pool.sandboxes, s.Name())
	p.step()
}

func (p *Pool) destroyFailed(s *sandbox, err error, tries int) {
	p.log.Error("A sandbox could not be removed", "pool", s.Pool(), "sandbox", s.Name(), "tries", tries, "error", err)
	if tries == leakAfter {
		p.metrics.leaks.WithLabelValues(s.Pool()).Inc()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.failure = err
}
