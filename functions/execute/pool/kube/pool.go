// Package kube gets sandboxes from the warm pools of one namespace of a
// Kubernetes cluster. It watches the pools' Pods and claims a warm one with
// two writes side by side: it creates a SandboxClaim, and takes the Pod by the
// lock on its label. The controller is not on that path, so it may be down as
// long as there are warm sandboxes. When there is none, the claim is left to
// the controller, which serves such claims in order of their creation.
//
// Whatever goes wrong in between, a sandbox that may be ours is not used by
// anyone else and ends with its claim, by the claim's shutdown time, or by its
// Pod's own deadline.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

const (
	// bindTimeout bounds the writes of a claim. The controller leaves claimed
	// Pods without a claim alone for longer.
	bindTimeout = 4 * time.Second
	// endTimeout bounds one write of a claim's end, endTries their number.
	endTimeout = 5 * time.Second
	endTries   = 4
	// dialTimeout bounds the connection to a runner in the same cluster, and
	// helloTimeout how long that one takes to be ready: it is when it is warm.
	dialTimeout  = time.Second
	helloTimeout = 3 * time.Second
	// releaseDelay is how long a sandbox that has reported, and its claim, outlive
	// the release, so that the answer is on its way before the cluster is busy
	// with what they leave behind; maxReleaseDelay is how long they do at most for the
	// sake of other executions.
	releaseDelay    = 10 * time.Millisecond
	maxReleaseDelay = 500 * time.Millisecond
	// refusedFor is how long after a refusal claims are made before sandboxes
	// are taken for them.
	refusedFor = time.Minute
	// selfServeAfter is how long the head of the queue leaves a warm sandbox to the
	// controller before taking it itself.
	selfServeAfter = 250 * time.Millisecond
	// shutdownSlack and podSlack are what a claim and its Pod live beyond the
	// deadline when nobody ends them.
	shutdownSlack = 5 * time.Second
	podSlack      = 15 * time.Second
	// defaultRemember is longer than a broker's retries take.
	defaultRemember = 10 * time.Minute

	tracerName = "github.com/preheat-dev/preheat/functions/execute/pool/kube"
)

// Config is how to reach the pools.
type Config struct {
	// Client is the configuration for the API server. Its rate limits are
	// replaced: a claim must not wait behind others in this process.
	Client *rest.Config
	// Namespace holds the pools.
	Namespace string
	// Remember is how long the answers of events are kept, by default ten
	// minutes and a day at most.
	Remember time.Duration
	// MaxSessions bounds the sessions that are open at once, MaxPoolSessions
	// those of one pool.
	MaxSessions, MaxPoolSessions int
}

// Pool is the warm pools of a namespace.
type Pool struct {
	namespace string
	remember  time.Duration
	kube      kubernetes.Interface
	client    versioned.Interface
	cache     *cache
	reach     *reach
	running   running
	keys      *keyring
	metrics   *Metrics
	log       *slog.Logger
	tracer    trace.Tracer
	conflicts conflicts
	opening   opening
	// refused is when a claim was last refused for a quota, in nanoseconds of
	// Unix time.
	refused atomic.Int64

	// ctx ends with Close; work are the ends of claims.
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	// active counts the executions from their claims to their releases; idle
	// is closed while there is none.
	active int
	idle   chan struct{}
	work   sync.WaitGroup
}

var _ pool.Pool = (*Pool)(nil)

// New connects to the cluster and returns when the pools are known.
func New(ctx context.Context, c Config, m *Metrics, log *slog.Logger) (*Pool, error) {
	if c.Namespace == "" {
		return nil, errors.New("the namespace of the pools is not set")
	}
	config := rest.CopyConfig(c.Client)
	config.QPS = -1
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for claims: %w", err)
	}
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for Pods: %w", err)
	}
	p := &Pool{
		namespace: c.Namespace, remember: min(cmp.Or(max(c.Remember, 0), defaultRemember), 24*time.Hour), kube: kube, client: client, metrics: m, log: log,
		tracer: otel.Tracer(tracerName), opening: opening{most: c.MaxSessions, mostPerPool: c.MaxPoolSessions},
	}
	p.keys = newKeyring(kube.CoreV1().Secrets(c.Namespace))
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.reach = newReach(p.ctx, func(poolName string) (*corev1.Pod, bool) { return p.cache.target(poolName) }, m, log)
	if p.cache, err = newCache(kube, client, c.Namespace); err != nil {
		p.cancel()
		return nil, err
	}
	if err := p.cache.start(ctx); err != nil {
		p.cancel()
		p.cache.stop()
		return nil, fmt.Errorf("watch the pools of namespace %s: %w", c.Namespace, err)
	}
	if err := p.keys.read(ctx); err != nil {
		log.Warn("The keys of the sandboxes are read again with the first claim", "error", err)
	}
	return p, nil
}

// Close ends the watches, and waits until the claims that were released have
// been deleted or given up.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.work.Wait()
	p.cancel()
	p.reach.stop()
	p.cache.stop()
	return nil
}

// enter counts an execution, until leave.
func (p *Pool) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active == 0 {
		p.idle = make(chan struct{})
	}
	p.active++
}

func (p *Pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active--; p.active == 0 {
		close(p.idle)
	}
}

// yieldToActive delays the end of a sandbox while other executions run, up to
// maxReleaseDelay: it keeps the API server and a node busy, and a burst has many.
func (p *Pool) yieldToActive(ctx context.Context) {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-idle:
	case <-time.After(maxReleaseDelay):
	}
}

// background runs the end of a claim, which outlives its caller. After Close
// it runs at once, in the caller's time; its writes have time limits of their
// own.
func (p *Pool) background(f func(ctx context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.mu.Unlock()
		f(context.WithoutCancel(p.ctx))
		p.mu.Lock()
		return
	}
	p.work.Go(func() { f(p.ctx) })
}

// Ready implements pool.Pool.
func (p *Pool) Ready() error {
	if err := p.serving(); err != nil {
		return err
	}
	if err := p.cache.stale(); err != nil {
		return fmt.Errorf("%w: %w", pool.ErrClosed, err)
	}
	return p.reach.ready(p.cache.poolNames())
}

// serving returns nil until the pool is closed.
func (p *Pool) serving() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return pool.ErrClosed
	}
	return nil
}

// Changed implements pool.Pool.
func (p *Pool) Changed() <-chan struct{} { return p.cache.changed() }
