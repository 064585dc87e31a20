package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/session"
	"github.com/preheat-dev/preheat/api/sandbox/tracecontext"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/quota"
)

// annotationRequest is the id of the execution, on its claim.
const annotationRequest = v1alpha1.GroupName + "/request"

// Paths of a claim, in metrics and traces.
const (
	pathFast = "fast"
	pathSlow = "slow"
)

// errUnusable: the sandbox that an attempt won, or would have won, cannot be
// used. Another one may be.
var errUnusable = errors.New("the sandbox cannot be used")

// attempt is one claim on its way to a sandbox.
type attempt struct {
	*Pool
	offer
	want pool.Claim
	name string
	// since is when the first attempt for the same execution began, end when its
	// caller no longer wants a sandbox.
	since, end time.Time
	// trial says that it goes on although runners cannot be reached.
	trial bool
	// unreached are the candidates that were not claimed since their runners
	// could not be reached. They are candidates again when the execution has a
	// sandbox or has failed.
	unreached []*candidate
	// discarded is closed when the claim of an event or a session that came to nothing
	// has been deleted, or cannot be; nil if there is none.
	discarded <-chan struct{}
	// id tells this attempt from others that make a claim of the same name.
	id string
	// session is the session that the sandbox is for, or nil.
	session *pool.SessionClaim
	// uid is the claim's, once it is known that it was created.
	uid types.UID
}

// Claim implements pool.Pool.
func (p *Pool) Claim(ctx context.Context, want pool.Claim) (pool.Sandbox, error) {
	o, err := p.choose(want)
	if err != nil {
		return nil, err
	}
	s, err := p.get(ctx, o, want, nil)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// choose returns the pool for a claim.
func (p *Pool) choose(want pool.Claim) (offer, error) {
	if err := p.serving(); err != nil {
		return offer{}, err
	}
	if want.Memory > 0 {
		return offer{}, &pool.InvalidError{Field: "limits.memory_bytes", Detail: "the sandboxes of this cluster have the memory of their template"}
	}
	return p.cache.choose(want, p.reach.refused)
}

// get claims a sandbox of o, for the session keep if that is not nil. Whoever gets one has
// to release it.
func (p *Pool) get(ctx context.Context, o offer, want pool.Claim, keep *pool.SessionClaim) (*sandbox, error) {
	ctx, span := p.tracer.Start(ctx, "sandbox.claim", trace.WithAttributes(
		attribute.String("preheat.pool", o.pool.Name), attribute.String("preheat.execution", want.ID)))
	defer span.End()
	start := time.Now()
	p.enter()
	s, path, err := p.claim(ctx, o, want, keep)
	for end := patience(ctx); err != nil && p.reach.refused(o.pool.Name) != nil && p.reach.recovers(ctx, o.pool.Name, end); {
		s, path, err = p.claim(ctx, o, want, keep)
	}
	span.SetAttributes(attribute.String("preheat.path", path))
	if err != nil {
		p.leave()
		span.SetStatus(codes.Error, err.Error())
		return nil, err
	}
	span.SetAttributes(attribute.String("preheat.sandbox", s.name))
	p.metrics.claim.WithLabelValues(path).Observe(time.Since(start).Seconds())
	return s, nil
}

// claim takes a warm sandbox, unless others wait already, and else waits. It
// tries again when the one that it won cannot be used, with another claim.
func (p *Pool) claim(ctx context.Context, o offer, want pool.Claim, keep *pool.SessionClaim) (s *sandbox, path string, err error) {
	asTrial, done, err := p.reach.admit(o.pool.Name)
	if err != nil {
		return nil, pathFast, err
	}
	defer done()
	a := p.newAttempt(o, want, keep, time.Now())
	a.trial, a.end = asTrial, patience(ctx)
	defer func() { p.cache.release(a.unreached...) }()
	path = pathFast
	if n, _ := p.cache.waiting(o.pool.Name, nil); n > 0 {
		path = pathSlow
		p.metrics.misses.WithLabelValues(o.pool.Name).Inc()
	}
	for ; ; a = a.again() {
		if path == pathFast {
			s, err = a.fast(ctx)
		} else {
			s, err = a.slow(ctx)
		}
		switch {
		case s != nil:
			s.queued = path == pathSlow
			return s, path, nil
		case err == nil: // none is warm
			path = pathSlow
			p.metrics.misses.WithLabelValues(o.pool.Name).Inc()
		case !errors.Is(err, errUnusable):
			return nil, path, err
		default:
			p.log.Warn("A sandbox could not be used", "pool", o.pool.Name, "path", path, "error", err)
		}
		if err = a.prepareNext(ctx, err); err != nil {
			return nil, path, err
		}
	}
}

// prepareNext waits until another attempt can be made. It returns an error if
// there is to be none, after failure, which is nil if nothing was warm.
func (a *attempt) prepareNext(ctx context.Context, failure error) error {
	if a.discarded != nil { // the next claim has the same name
		select {
		case <-a.discarded:
		case <-ctx.Done():
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(fmt.Errorf("%w: %w", pool.ErrNoSandbox, cause), failure)
	}
	if failure == nil {
		return nil
	}
	if refused := a.reach.refused(a.pool.Name); refused != nil {
		return refused
	}
	if !time.Now().Before(a.end) {
		return fmt.Errorf("%w: %w", pool.ErrNoSandbox, failure)
	}
	return nil
}

func (p *Pool) newAttempt(o offer, want pool.Claim, s *pool.SessionClaim, since time.Time) *attempt {
	a := &attempt{Pool: p, offer: o, want: want, session: s, since: since, id: uuid.NewString()}
	switch {
	case s != nil:
		a.name = session.ClaimName(s.Session)
	case want.Event != "":
		a.name = claimOf(want.Event)
	default:
		a.name = "claim-" + a.id
	}
	return a
}

// named reports whether all attempts for the same want make claims of one name.
func (a *attempt) named() bool { return a.want.Event != "" || a.session != nil }

// again is the next attempt for the same execution.
func (a *attempt) again() *attempt {
	next := a.newAttempt(a.offer, a.want, a.session, a.since)
	next.trial, next.end, next.unreached = a.trial, a.end, a.unreached
	return next
}

// fast creates the claim, takes a candidate and connects to it side by side; if
// others were faster it goes on to the next one. It returns nil when there is
// none.
func (a *attempt) fast(caller context.Context) (*sandbox, error) {
	ctx, cancel := context.WithTimeout(caller, bindTimeout)
	defer cancel()
	e, d, err := a.candidate(ctx)
	if e == nil {
		return nil, err
	}
	pod, claimErr, err := a.begin(ctx, e)
	if claimErr != nil {
		d.cancel()
		a.discard(pod)
		return nil, a.explain(caller, "create a claim", claimErr)
	}
	for pod == nil && err == nil {
		d.cancel()
		if e, d, err = a.candidate(ctx); e == nil {
			a.discard(nil)
			return nil, err
		}
		pod, err = a.win(ctx, e)
	}
	if err != nil {
		d.cancel()
		a.discard(nil)
		return nil, a.explain(caller, "claim sandbox "+e.pod.Name, err)
	}
	s, err := a.connect(ctx, pod, d)
	if err != nil {
		// It died before anyone knew: the claim goes with it.
		a.discard(pod)
		return nil, a.explain(caller, "claim sandbox "+pod.Name, err)
	}
	return s, nil
}

// candidate takes a candidate and begins to connect to it. While runners could
// not be reached lately it waits for the connection, so that no sandbox is
// spent on another failure. It returns nil when there is none.
func (a *attempt) candidate(ctx context.Context) (*candidate, *dialing, error) {
	e, err := a.usable(ctx)
	if e == nil {
		return nil, nil, err
	}
	d := a.dial(ctx, e.pod)
	if !a.reach.cautious(a.pool.Name) {
		return e, d, nil
	}
	if err := a.reached(ctx, e.pod, d); err != nil {
		a.unreached = append(a.unreached, e)
		return nil, nil, err
	}
	return e, d, nil
}

// usable takes a candidate whose token is known. One whose token is not known
// here is never taken again. It returns nil when there is none.
func (a *attempt) usable(ctx context.Context) (*candidate, error) {
	for {
		e := a.cache.take(a.offer, a.reach.avoids(a.pool.Name))
		if e == nil {
			return nil, nil
		}
		_, err := a.keys.token(ctx, e.pod)
		switch {
		case err == nil:
			return e, nil
		case errors.Is(err, errUnknownKey):
			a.log.Warn("A sandbox cannot be used", "pool", a.pool.Name, "sandbox", e.pod.Name, "error", err)
		default:
			a.cache.release(e)
			return nil, fmt.Errorf("get the token of a sandbox: %w", err)
		}
	}
}

// begin creates the claim and takes a sandbox side by side. The claim comes
// first where it may be refused, so that no sandbox is spent on it: that of an
// event, which may have been delivered before, and any while a quota is used up. So
// does that of a session: an earlier attempt may have left a sandbox with its name.
func (a *attempt) begin(ctx context.Context, e *candidate) (pod *corev1.Pod, claimErr, err error) {
	if a.named() || time.Since(time.Unix(0, a.refused.Load())) < refusedFor {
		if claimErr = a.create(ctx, v1alpha1.BindingClaimant, bindTimeout); claimErr != nil {
			a.cache.release(e)
			return nil, claimErr, nil
		}
		pod, err = a.win(ctx, e)
		return pod, nil, err
	}
	created := make(chan error, 1)
	go func() { created <- a.create(ctx, v1alpha1.BindingClaimant, bindTimeout) }() // received below
	pod, err = a.win(ctx, e)
	return pod, <-created, err
}

// create creates the SandboxClaim.
func (a *attempt) create(ctx context.Context, binding v1alpha1.Binding, wait time.Duration) error {
	seconds := min(max(int32(wait.Seconds()+0.999), 1), 3600)
	claim := &v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Annotations: map[string]string{annotationRequest: a.want.ID}},
		Spec: v1alpha1.SandboxClaimSpec{
			WarmPoolRef: v1alpha1.Reference{Name: a.pool.Name}, Binding: binding, BindTimeoutSeconds: seconds,
			Lifecycle: v1alpha1.Lifecycle{
				ShutdownTime:            &metav1.Time{Time: a.want.Deadline.Add(shutdownSlack)},
				TTLSecondsAfterFinished: ptr.To[int32](0),
			},
		},
	}
	if a.want.Event != "" {
		claim.Annotations[annotationDelivery], claim.Annotations[v1alpha1.AnnotationBegun] = a.id, "false"
		claim.Spec.Lifecycle.TTLSecondsAfterFinished = ptr.To(int32(a.remember.Seconds()))
	}
	if a.session != nil {
		claim.Annotations[annotationDelivery] = a.id
		claim.Spec.Session = &v1alpha1.ClaimSession{Language: a.want.Language, IdleSeconds: idleSeconds(a.session.Idle)}
		claim.Spec.Lifecycle.TTLSecondsAfterFinished = ptr.To(int32(rememberEnd.Seconds()))
	}
	if parent := tracecontext.Of(ctx); parent != "" {
		claim.Annotations[v1alpha1.AnnotationTrace] = parent
	}
	created, err := a.client.SandboxV1alpha1().SandboxClaims(a.namespace).Create(ctx, claim, metav1.CreateOptions{})
	switch {
	case err == nil && a.named():
		a.uid = created.UID
	case quota.IsExceeded(err) || apierrors.IsTooManyRequests(err):
		a.refused.Store(time.Now().UnixNano())
	}
	return err
}

// win takes the lock of a sandbox. It returns nil without an error when
// someone else has it.
func (a *attempt) win(ctx context.Context, e *candidate) (*corev1.Pod, error) {
	record, err := a.record()
	if err != nil {
		return nil, err
	}
	patch, err := lock.Claim(lock.Holder{Claim: a.name, UID: a.uid, Trace: tracecontext.Of(ctx), Session: record})
	if err != nil {
		return nil, err
	}
	pods := a.kube.CoreV1().Pods(a.namespace)
	pod, err := pods.Patch(ctx, e.pod.Name, lock.PatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		return pod, nil
	case lock.Lost(err):
		a.metrics.conflicts.WithLabelValues(a.pool.Name).Inc()
		a.cache.lost()
		return nil, nil
	case ctx.Err() != nil:
		a.background(func(ctx context.Context) { a.settle(ctx, e) })
		return nil, err
	}
	// The answer may be lost and the sandbox ours.
	pod, getErr := pods.Get(ctx, e.pod.Name, metav1.GetOptions{})
	switch {
	case getErr != nil:
		// Whoever tries it next tests the lock again.
		a.cache.release(e)
		return nil, errors.Join(err, getErr)
	case a.holds(pod):
		return pod, nil
	case pod.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm:
		a.cache.release(e)
		return nil, err
	}
	return nil, nil
}

// settle ends an attempt to take a sandbox whose answer nobody waited for: the
// sandbox is given up if the attempt won it, and else is a candidate again.
func (a *attempt) settle(ctx context.Context, e *candidate) {
	getting, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	pod, err := a.kube.CoreV1().Pods(a.namespace).Get(getting, e.pod.Name, metav1.GetOptions{})
	if err == nil && a.holds(pod) {
		a.discardSandbox(ctx, pod.Name)
		return
	}
	// Whoever tries it next tests the lock again.
	a.cache.release(e)
}

// holds reports whether a Pod is this attempt's.
func (a *attempt) holds(pod *corev1.Pod) bool {
	return pod.Labels[v1alpha1.LabelClaim] == a.name && (a.uid == "" || pod.Labels[v1alpha1.LabelClaimUID] == string(a.uid))
}

// lifetime is how long the Pod may run, counted from its own start: the node's
// last resort. Clocks may differ, so its age is at least what was seen of it.
func (a *attempt) lifetime(e *candidate) time.Duration {
	now := time.Now()
	age := now.Sub(e.seen)
	if t := e.pod.Status.StartTime; t != nil {
		age = max(age, now.Sub(t.Time))
	}
	return age + a.want.Deadline.Sub(now) + podSlack
}

// explain turns an API server's answer into the contract's error.
func (a *attempt) explain(caller context.Context, doing string, err error) error {
	if errors.Is(err, errUnusable) {
		return err
	}
	if cause := context.Cause(caller); cause != nil {
		return fmt.Errorf("%s: %w: %w", doing, pool.ErrNoSandbox, cause)
	}
	kind := pool.ErrClosed
	if a.want.Event != "" && apierrors.IsAlreadyExists(err) {
		kind = pool.ErrDelivered
	} else if quota.IsExceeded(err) || apierrors.IsTooManyRequests(err) {
		kind = pool.ErrOverQuota
	}
	return fmt.Errorf("%s: %w: %w", doing, kind, err)
}
