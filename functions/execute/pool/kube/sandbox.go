package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/remote"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/pause"
)

// lostGrace is what a lost sandbox's runner may still say: its last words may
// be on the way when the Pod is gone.
const lostGrace = time.Second

// sandbox is a claimed Pod.
type sandbox struct {
	owner    *Pool
	pod      *corev1.Pod // as it was claimed
	name     string
	poolName string
	claim    string
	// kept says that the claim stays when the sandbox goes, as the record of
	// an event, which Finish ends.
	kept bool
	// lifetime is how long the Pod may live from its own start on, if nobody
	// has told the node yet.
	lifetime time.Duration
	conn     net.Conn
	runner   *wire.Client // of conn
	// ended has the Pod as it was last seen, once it has ended.
	ended    chan *corev1.Pod
	queued   bool
	reported bool
	released sync.Once
}

var _ pool.Sandbox = (*sandbox)(nil)

// Name implements pool.Sandbox.
func (s *sandbox) Name() string { return s.name }

// Pool implements pool.Sandbox.
func (s *sandbox) Pool() string { return s.poolName }

// Queued implements pool.Sandbox.
func (s *sandbox) Queued() bool { return s.queued }

// Run implements pool.Sandbox.
func (s *sandbox) Run(ctx context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
	ctx, span := s.owner.tracer.Start(ctx, "sandbox.run", trace.WithAttributes(
		attribute.String("preheat.pool", s.poolName), attribute.String("preheat.sandbox", s.name)))
	defer span.End()
	defer s.limitLater(ctx)()
	began := time.Now()
	outcome, err := remote.Run(ctx, s.runner, run, sink)
	s.reported = err == nil
	var failure *wire.Failure
	var invalid *pool.InvalidError
	switch {
	case err == nil:
		span.SetAttributes(attribute.String("preheat.status", string(outcome.Status)))
		return outcome, nil
	case errors.As(err, &failure), errors.As(err, &invalid), ctx.Err() != nil:
	case s.outOfMemory(ctx):
		span.SetAttributes(attribute.String("preheat.status", string(execution.StatusOutOfMemory)))
		return killedForMemory(time.Since(began)), nil
	default:
		err = fmt.Errorf("%w: %w", pool.ErrSandboxLost, err)
	}
	span.SetStatus(codes.Error, err.Error())
	return pool.Outcome{}, err
}

// limitAfter is longer than most programs take: they are spared the write, which
// has the node look at their Pod while they run.
const limitAfter = time.Second

// limitLater tells the node, once the program has run for a while, how long the
// Pod may live, as the last resort when everybody else is gone. The caller ends
// it with stop.
func (s *sandbox) limitLater(ctx context.Context) (stop func()) {
	if s.lifetime == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		if !pause.For(ctx, limitAfter) {
			return
		}
		if err := s.limit(ctx); err != nil && ctx.Err() == nil {
			s.owner.log.Warn("A sandbox could not be given a deadline", "sandbox", s.name, "error", err)
		}
	})
	return func() { cancel(); work.Wait() }
}

// limit tells the node how long the Pod may live.
func (s *sandbox) limit(ctx context.Context) error {
	patch, err := lock.Limit(s.claim, s.lifetime)
	if err != nil {
		return err
	}
	_, err = s.owner.kube.CoreV1().Pods(s.owner.namespace).Patch(ctx, s.name, lock.PatchType, patch, metav1.PatchOptions{})
	return err
}

// lost bounds the wait for the runner of a Pod that is gone.
func (s *sandbox) lost() { _ = s.conn.SetReadDeadline(time.Now().Add(lostGrace)) }

// Release implements pool.Sandbox. The runner kills everything as the
// connection ends; the claim's deletion then takes the Pod away.
func (s *sandbox) Release() {
	s.released.Do(func() {
		s.owner.cache.unhold(s)
		s.owner.leave()
		if !s.reported {
			_ = s.conn.Close()
		}
		s.owner.background(func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(releaseDelay):
			}
			s.owner.yieldToActive(ctx)
			_ = s.conn.Close()
			if !s.kept {
				s.owner.endClaim(ctx, s.claim, s.poolName)
			}
		})
	})
}

// discard ends a claim that came to nothing. A sandbox that it may have won is
// discarded, so that it does not wait for a claim that may never come to be.
func (a *attempt) discard(pod *corev1.Pod) {
	if pod != nil {
		a.background(func(ctx context.Context) { a.discardSandbox(ctx, pod.Name) })
	}
	if !a.named() {
		a.background(func(ctx context.Context) { a.endClaim(ctx, a.name, a.pool.Name) })
		return
	}
	discarded := make(chan struct{})
	a.discarded = discarded
	a.background(func(ctx context.Context) {
		defer close(discarded)
		a.discardClaim(ctx)
	})
}

func (a *attempt) discardSandbox(ctx context.Context, name string) {
	patch, err := lock.Discard(lock.Holder{Claim: a.name, UID: a.uid})
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, endTimeout)
		defer cancel()
		_, err = a.kube.CoreV1().Pods(a.namespace).Patch(ctx, name, lock.PatchType, patch, metav1.PatchOptions{})
	}
	if err != nil && !lock.Lost(err) {
		a.log.Warn("A sandbox could not be given up, the controller will find it", "sandbox", name, "error", err)
	}
}

// endClaim deletes a claim. One that cannot be deleted ends at its shutdown
// time.
func (p *Pool) endClaim(ctx context.Context, name, poolName string) {
	err := retry(ctx, nil, func(ctx context.Context) error { return p.deleteClaim(ctx, name) })
	if err != nil {
		p.log.Error("A claim could not be deleted, it ends at its shutdown time", "pool", poolName, "claim", name, "error", err)
	}
}

func (p *Pool) deleteClaim(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	err := p.client.SandboxV1alpha1().SandboxClaims(p.namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
