package contract_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

const (
	soakClients = 16
	// soakRuns is how often each session is used.
	soakRuns = 5
	// soakIdle is how long the sessions stay that are abandoned.
	soakIdle = 5 * time.Second
)

// soak is many sessions at once, while replicas and the controller come and go.
type soak struct {
	*land
	mu       sync.Mutex
	replicas []*kube.Pool
	// lost and foreign count the sessions that were gone too early and the runs
	// that met another session's state.
	lost, foreign, closed, abandoned, interrupted atomic.Int64
}

// any is one of the replicas.
func (s *soak) any() *kube.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replicas[rand.IntN(len(s.replicas))]
}

// passing reports whether an error is one of a replica that goes, or of a pool in
// which all is in use: its caller tries again.
func passing(err error) bool {
	return errors.Is(err, pool.ErrClosed) || errors.Is(err, pool.ErrNoSandbox) || errors.Is(err, pool.ErrTooManySessions) || errors.Is(err, context.Canceled)
}

// client opens a session, uses it and ends it.
func (s *soak) client(ctx context.Context, n int) error {
	abandon := n%2 == 0
	idle := time.Hour
	if abandon {
		idle = soakIdle
	}
	var opened pool.Session
	for opened == nil {
		var err error
		if opened, err = s.open(s.any(), idle, time.Hour); err != nil && !passing(err) {
			return fmt.Errorf("open: %w", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	id, used := opened.Info().ID, time.Now()
	for i := range soakRuns {
		code := fmt.Sprintf("n = %d; i = 0\nprint(n, i)", n)
		if i > 0 {
			code = "i += 1; print(n, i)"
		}
		o, text, err := s.runSomewhere(ctx, id, code, i == 2 && n%5 == 0)
		var over *pool.SessionEndedError
		switch {
		case errors.As(err, &over) && abandon && over.Reason == execution.SessionIdle && time.Since(used) >= soakIdle:
			s.abandoned.Add(1) // its client was too slow
			return nil
		case errors.As(err, &over):
			s.lost.Add(1)
			return fmt.Errorf("session %d, run %d: %w", n, i, err)
		case err != nil:
			return fmt.Errorf("session %d, run %d: %w", n, i, err)
		}
		used = time.Now()
		if text != fmt.Sprintf("%d %d\n", n, i) || o.Sequence < int64(i+1) {
			s.foreign.Add(1)
			return fmt.Errorf("session %d, run %d: it wrote %q, %+v", n, i, text, o)
		}
	}
	if abandon {
		s.abandoned.Add(1)
		return nil
	}
	for {
		err := s.any().EndSession(ctx, id)
		if err == nil {
			s.closed.Add(1)
			return nil
		}
		if !passing(err) {
			return fmt.Errorf("end session %d: %w", n, err)
		}
	}
}

// runSomewhere runs a cell by any replica, by another one while they go. broken has
// the connection of an earlier run end in its middle, as a killed replica's does.
func (s *soak) runSomewhere(ctx context.Context, id, code string, broken bool) (pool.SessionOutcome, string, error) {
	if broken {
		if err := s.breakOff(ctx, id); err != nil {
			return pool.SessionOutcome{}, "", err
		}
	}
	for {
		o, text, err := s.run(s.any(), id, code)
		var busy *pool.BusyError
		if err == nil || !passing(err) && !errors.As(err, &busy) || ctx.Err() != nil {
			return o, text, err
		}
	}
}

// breakOff begins a run and goes away.
func (s *soak) breakOff(ctx context.Context, id string) error {
	for {
		session, err := s.any().Session(ctx, id)
		if err != nil && passing(err) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err = session.Run(ctx, "broken", pool.Run{Language: "python", Code: []byte("import time; time.sleep(60)"), Limits: pool.Limits{
			Timeout: time.Minute, Output: 1 << 20, TotalOutput: 1 << 24,
		}}, goneAt(cancel))
		if err == nil || passing(err) {
			s.interrupted.Add(1)
			return nil
		}
		return err
	}
}

// goneAt is a caller that goes away when its program has started.
type goneAt func()

func (f goneAt) Started()                             { f() }
func (goneAt) Output(execution.Stream, []byte, int64) {}
func (goneAt) Result(execution.RichResult)            {}
func (goneAt) Artifact(execution.Artifact)            {}

// disturb replaces replicas, and the controller less often than its lease takes to
// pass to the next one, until ctx ends.
func (s *soak) disturb(ctx context.Context, controller *stage.Controller) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
		if n%10 == 9 {
			controller.Kill()
			controller = s.Controller()
			continue
		}
		fresh := s.replica(64)
		s.mu.Lock()
		old := s.replicas[0]
		s.replicas = append(s.replicas[1:], fresh)
		s.mu.Unlock()
		if err := old.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// TestSessionsSoak: sessions of many clients, while replicas and controllers come
// and go: none is lost, none is served to another, and nothing is left.
func TestSessionsSoak(t *testing.T) {
	count := 40
	if text := os.Getenv("SESSIONS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("SESSIONS: %v", err)
		}
	}
	s := &soak{land: newLandOf(t, 4, 24)}
	controller := s.Controller()
	s.replicas = []*kube.Pool{s.replica(64), s.replica(64)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var disturbing, clients sync.WaitGroup
	disturbing.Go(func() { s.disturb(ctx, controller) })
	next := atomic.Int64{}
	for range soakClients {
		clients.Go(func() {
			for {
				n := int(next.Add(1))
				if n > count {
					return
				}
				if err := s.client(ctx, n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	stop()
	disturbing.Wait()
	s.Eventually("no session is left", func() bool {
		for _, c := range s.Claims() {
			if c.Status.FinishedAt == nil {
				return false
			}
		}
		return len(s.Pods("claimed")) == 0
	})
	t.Logf("%d sessions: closed=%d abandoned=%d interrupted=%d lost=%d foreign=%d", count,
		s.closed.Load(), s.abandoned.Load(), s.interrupted.Load(), s.lost.Load(), s.foreign.Load())
}
