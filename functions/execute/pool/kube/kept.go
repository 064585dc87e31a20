package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/remote"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// kept is an open session. What its runner's silence means is asked of the
// cluster.
type kept struct {
	*remote.Session
	owner *Pool
}

var _ pool.Session = (*kept)(nil)

// explain is the error of an operation: that the session has ended, if that is
// behind it.
func (k *kept) explain(ctx context.Context, err error) error {
	var failure *wire.Failure
	var invalid *pool.InvalidError
	var busy *pool.BusyError
	var over *pool.SessionEndedError
	switch {
	case err == nil, ctx.Err() != nil, errors.As(err, &failure), errors.As(err, &invalid), errors.As(err, &busy),
		errors.Is(err, pool.ErrNothingRuns), errors.Is(err, pool.ErrNoFile):
		return err
	}
	end := k.owner.endKnown(ctx, k.Info().ID)
	switch {
	case errors.As(end, &over):
		return end
	case errors.Is(end, pool.ErrNoSession):
		return &pool.SessionEndedError{Reason: execution.SessionSandboxLost}
	case errors.As(err, &over):
		return err // its runner knows of no end outside
	}
	return fmt.Errorf("%w: %w", pool.ErrSandboxLost, err)
}

// Status implements pool.Session.
func (k *kept) Status(ctx context.Context) (pool.SessionStatus, error) {
	s, err := k.Session.Status(ctx)
	return s, k.explain(ctx, err)
}

// Run implements pool.Session. A program that takes its sandbox along by using up
// the memory has an outcome all the same.
func (k *kept) Run(ctx context.Context, id string, run pool.Run, sink pool.Sink) (pool.SessionOutcome, error) {
	began := time.Now()
	started := &startSink{Sink: sink}
	o, err := k.Session.Run(ctx, id, run, started)
	if err == nil {
		return o, nil
	}
	err = k.explain(ctx, err)
	if pod := k.owner.cache.session(k.Info().ID); pod != nil && started.started() && oomKilled(pod) {
		return pool.SessionOutcome{Outcome: killedForMemory(time.Since(began)), State: execution.SessionLost}, nil
	}
	return o, err
}

// startSink notes whether the program has started.
type startSink struct {
	pool.Sink
	mu  sync.Mutex
	was bool
}

// Started implements pool.Sink.
func (s *startSink) Started() {
	s.mu.Lock()
	s.was = true
	s.mu.Unlock()
	s.Sink.Started()
}

func (s *startSink) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.was
}

// Interrupt implements pool.Session.
func (k *kept) Interrupt(ctx context.Context) error { return k.explain(ctx, k.Session.Interrupt(ctx)) }

// Files implements pool.Session.
func (k *kept) Files(ctx context.Context, max int) ([]pool.SessionFile, bool, error) {
	files, more, err := k.Session.Files(ctx, max)
	return files, more, k.explain(ctx, err)
}

// Open implements pool.Session.
func (k *kept) Open(ctx context.Context, path string, offset, length int64) (pool.SessionFile, io.ReadCloser, error) {
	f, content, err := k.Session.Open(ctx, path, offset, length)
	return f, content, k.explain(ctx, err)
}

// Archive implements pool.Session.
func (k *kept) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	content, err := k.Session.Archive(ctx, path)
	return content, k.explain(ctx, err)
}

// Write implements pool.Session.
func (k *kept) Write(ctx context.Context, path string, content io.Reader) (pool.SessionFile, bool, error) {
	f, created, err := k.Session.Write(ctx, path, content)
	return f, created, k.explain(ctx, err)
}

// Remove implements pool.Session.
func (k *kept) Remove(ctx context.Context, path string) error {
	return k.explain(ctx, k.Session.Remove(ctx, path))
}
