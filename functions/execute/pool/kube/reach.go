package kube

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/internal/pause"
)

// probeFirst and probeAtMost are the pauses between probes of a pool whose
// runners cannot be reached.
const (
	probeFirst  = 500 * time.Millisecond
	probeAtMost = 8 * time.Second
)

// youth is how long after its start a process waits for runners that it cannot
// reach: the cluster's network may not know its Pod yet.
const (
	youth     = 15 * time.Second
	lookAgain = 50 * time.Millisecond
)

// reach is what this process knows about whether the runners of each pool can
// be reached, and the probes that find out when they can be again.
type reach struct {
	// target finds a warm sandbox of a pool to probe, which may be nil. known is
	// false when there is no such pool.
	target  func(poolName string) (pod *corev1.Pod, known bool)
	metrics *Metrics
	log     *slog.Logger
	// ctx ends the probes.
	ctx context.Context
	// young is until when claims wait instead of being refused; guarded by mu.
	young  time.Time
	probes sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	// pools holds those where a runner could not be reached lately.
	pools map[string]*poolReach
}

type poolReach struct {
	breaker
	// opened is closed when the breaker opens.
	opened chan struct{}
}

func newReach(ctx context.Context, target func(string) (*corev1.Pod, bool), m *Metrics, log *slog.Logger) *reach {
	return &reach{target: target, metrics: m, log: log, ctx: ctx, young: time.Now().Add(youth), pools: map[string]*poolReach{}}
}

// of returns what is known of a pool. mu is held.
func (r *reach) of(poolName string) *poolReach {
	p := r.pools[poolName]
	if p == nil {
		p = &poolReach{opened: make(chan struct{})}
		r.pools[poolName] = p
	}
	return p
}

// admit decides about a claim. done has to be called at its end. asTrial says
// that it goes on although the breaker is open.
func (r *reach) admit(poolName string) (asTrial bool, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pools[poolName]
	if p == nil {
		return false, func() {}, nil
	}
	if asTrial, err = p.admit(); !asTrial {
		return false, func() {}, err
	}
	return true, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		p.endTrial()
	}, nil
}

// refused is why a pool's claims are not admitted now, if they are not.
func (r *reach) refused(poolName string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pools[poolName]; p != nil {
		return p.ready()
	}
	return nil
}

// recovers waits, in a young process, until a pool's claims are admitted again,
// and reports whether they are. ctx and end bound it.
func (r *reach) recovers(ctx context.Context, poolName string, end time.Time) bool {
	for r.isYoung() && time.Now().Before(end) && pause.For(ctx, lookAgain) {
		if r.refused(poolName) == nil {
			return true
		}
	}
	return r.refused(poolName) == nil && ctx.Err() == nil
}

func (r *reach) isYoung() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.young)
}

// opened returns a channel that is closed when a pool's claims are refused.
func (r *reach) opened(poolName string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(poolName).opened
}

// cautious reports whether a runner of a pool has to be reached before its
// sandbox is claimed.
func (r *reach) cautious(poolName string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pools[poolName]
	return p != nil && p.cautious()
}

// avoids returns a function that reports whether a sandbox of a pool is on a
// node whose sandboxes come last, or nil when there is no such node.
func (r *reach) avoids(poolName string) func(*corev1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pools[poolName]
	if p == nil || len(p.avoided) == 0 {
		return nil
	}
	now := time.Now()
	b := breaker{avoided: maps.Clone(p.avoided)}
	return func(pod *corev1.Pod) bool { return b.avoids(pod.Spec.NodeName, now) }
}

// report notes whether the runner of a pool's sandbox could be reached: err is
// why not.
func (r *reach) report(poolName string, pod *corev1.Pod, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.young = time.Time{} // the network knows this process
		if p := r.pools[poolName]; p != nil && p.succeeded(pod.Spec.NodeName) {
			p.opened = make(chan struct{})
			r.metrics.suspended.WithLabelValues(poolName).Set(0)
			r.log.Info("Runners can be reached again, sandboxes are claimed", "pool", poolName, "sandbox", pod.Name)
		}
		return
	}
	r.metrics.unreachable.WithLabelValues(poolName).Inc()
	p := r.of(poolName)
	if !p.failed(pod.Spec.NodeName, err, time.Now()) {
		return
	}
	close(p.opened)
	r.metrics.suspended.WithLabelValues(poolName).Set(1)
	r.log.Error("Runners cannot be reached, no sandbox is claimed until one can be", "pool", poolName, "failures", p.failures,
		"sandbox", pod.Name, "node", pod.Spec.NodeName, "error", err)
	if !r.stopped {
		r.probes.Go(func() { r.probe(poolName) })
	}
}

// probe connects to warm sandboxes of a pool, one at a time, until its breaker
// closes. A runner drops a connection on which nothing is sent and stays warm,
// so none has to be claimed for it; where none is warm, one claim is let through.
func (r *reach) probe(poolName string) {
	for wait := probeFirst; r.probeOnce(poolName) && pause.For(r.ctx, wait); wait = min(2*wait, probeAtMost) {
	}
}

// probeOnce reports whether another probe is needed.
func (r *reach) probeOnce(poolName string) bool {
	pod, known := r.target(poolName)
	if !r.prepare(poolName, known, pod == nil) {
		return false
	}
	if pod == nil {
		return true
	}
	if err := probe(r.ctx, pod); err != nil {
		r.log.Debug("A probe of a sandbox failed", "pool", poolName, "sandbox", pod.Name, "error", err)
		return true
	}
	r.report(poolName, pod, nil)
	return false
}

// prepare offers a trial, or withdraws the offer, and reports whether a pool
// still needs probes.
func (r *reach) prepare(poolName string, known, offer bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pools[poolName]
	if p == nil || !p.open() {
		return false
	}
	switch {
	case !known:
		delete(r.pools, poolName)
		r.metrics.suspended.DeleteLabelValues(poolName)
		return false
	case offer:
		p.offerTrial()
	default:
		p.withdrawTrial()
	}
	return true
}

// ready returns nil if claims of one of the pools are admitted, if there is no
// pool, or if the process is young.
func (r *reach) ready(poolNames []string) error {
	if r.isYoung() {
		return nil
	}
	var err error
	for _, name := range slices.Sorted(slices.Values(poolNames)) {
		if err = r.refused(name); err == nil {
			return nil
		}
	}
	return err
}

// stop waits for the probes, after ctx has ended.
func (r *reach) stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.probes.Wait()
}
