package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/session"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/remote"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/internal/pause"
)

var _ pool.Sessions = (*Pool)(nil)

const (
	// rememberEnd is how long it is known why a session has ended.
	rememberEnd = 10 * time.Minute
	// findTimeout bounds how long a session whose claim says that it is there is
	// looked for: the Pod's watch may lag.
	findTimeout = 5 * time.Second
)

// OpenSession implements pool.Sessions.
func (p *Pool) OpenSession(ctx context.Context, want pool.SessionClaim) (pool.Session, error) {
	o, err := p.choose(want.Claim)
	if err != nil {
		return nil, err
	}
	opened, err := p.opening.reserve(want.Session, o.pool.Name, p.cache.listSessions())
	if err != nil {
		return nil, err
	}
	defer opened()
	s, err := p.get(ctx, o, want.Claim, &want)
	if err != nil {
		return nil, err
	}
	if err := remote.Open(ctx, s.runner, want); err != nil {
		s.Release()
		return nil, explainOpen(ctx, s.name, err)
	}
	info := pool.SessionInfo{
		ID: want.Session, Language: want.Language, Pool: s.poolName, Sandbox: s.name, Opened: time.Now(), Expires: want.Deadline, Idle: want.Idle,
	}
	kept := &kept{Session: remote.NewSession(info, &dialer{owner: p, pod: s.pod}), owner: p}
	s.keep()
	return kept, nil
}

// explainOpen is the error of a session that could not be opened in a sandbox.
func explainOpen(ctx context.Context, sandbox string, err error) error {
	var failure *wire.Failure
	var invalid *pool.InvalidError
	if !errors.As(err, &failure) && !errors.As(err, &invalid) && !errors.Is(err, pool.ErrNoSessions) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", pool.ErrSandboxLost, err)
	}
	return fmt.Errorf("opening a session in sandbox %s: %w", sandbox, err)
}

// keep gives a sandbox up that is a session's from now on: other replicas use it
// as this one does. The node is told how long it may live.
func (s *sandbox) keep() {
	s.released.Do(func() {
		s.owner.cache.unhold(s)
		s.owner.leave()
		_ = s.conn.Close()
		if s.lifetime == 0 {
			return
		}
		s.owner.background(func(ctx context.Context) {
			err := retry(ctx, lock.Lost, s.limit)
			if err != nil {
				s.owner.log.Warn("A session's sandbox could not be given a deadline", "sandbox", s.name, "error", err)
			}
		})
	})
}

// idleSeconds is what a claim says of how long its session may stay unused.
func idleSeconds(d time.Duration) int32 {
	return int32(min(math.Ceil(d.Seconds()), math.MaxInt32))
}

// record is what the Pod of a session says of it, and empty for all others.
func (a *attempt) record() (string, error) {
	if a.session == nil {
		return "", nil
	}
	spec := v1alpha1.SandboxClaimSpec{Session: &v1alpha1.ClaimSession{Language: a.want.Language, IdleSeconds: idleSeconds(a.session.Idle)}}
	return session.Annotation(&spec, time.Now(), a.want.Deadline)
}

// Session implements pool.Sessions. Every replica knows the open ones from the
// Pods that it follows; the API server is asked about others.
func (p *Pool) Session(ctx context.Context, id string) (pool.Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, findTimeout, fmt.Errorf("%w: the sandbox of the session is not known here yet", pool.ErrClosed))
	defer cancel()
	for {
		changed := p.cache.changed()
		if pod := p.cache.session(id); pod != nil && !ended(pod) && pod.Status.PodIP != "" {
			return p.sessionIn(pod), nil
		}
		if err := p.missing(ctx, id); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// sessionIn is the session whose sandbox is in a Pod.
func (p *Pool) sessionIn(pod *corev1.Pod) *kept {
	return &kept{Session: remote.NewSession(infoOf(pod), &dialer{owner: p, pod: pod}), owner: p}
}

func infoOf(pod *corev1.Pod) pool.SessionInfo {
	id, r, _ := session.Of(pod)
	return pool.SessionInfo{
		ID: id, Language: r.Language, Pool: pod.Labels[v1alpha1.LabelPool], Sandbox: pod.Name,
		Opened: r.Opened, Expires: r.Expires, Idle: time.Duration(r.IdleSeconds) * time.Second,
	}
}

// missing is why there is no session of this id, nil if it may come to be known.
func (p *Pool) missing(ctx context.Context, id string) error {
	c, err := p.client.SandboxV1alpha1().SandboxClaims(p.namespace).Get(ctx, session.ClaimName(id), metav1.GetOptions{})
	switch pod := p.cache.session(id); {
	case apierrors.IsNotFound(err):
		return pool.ErrNoSession
	case err != nil:
		return fmt.Errorf("%w: look for a session: %w", pool.ErrClosed, cmp.Or(context.Cause(ctx), err))
	case c.Status.FinishedAt != nil:
		ready := c.Status.GetCondition(v1alpha1.ConditionReady)
		return &pool.SessionEndedError{Reason: session.End(ready.GetReason())}
	case over(c, time.Now()):
		return &pool.SessionEndedError{Reason: execution.SessionExpired}
	case pod != nil && dead(pod):
		return &pool.SessionEndedError{Reason: session.EndOf(pod)}
	}
	return nil
}

// Sessions implements pool.Sessions.
func (p *Pool) Sessions(context.Context) ([]pool.SessionInfo, error) {
	if err := p.cache.stale(); err != nil {
		return nil, fmt.Errorf("%w: %w", pool.ErrClosed, err)
	}
	return p.cache.listSessions(), nil
}

// EndSession implements pool.Sessions. The claim's end is what counts: the
// controller destroys the sandbox then. Its runner ends sooner.
func (p *Pool) EndSession(ctx context.Context, id string) error {
	lasting := func(err error) bool { return !apierrors.IsConflict(err) }
	err := retry(ctx, lasting, func(ctx context.Context) error { return p.closeClaim(ctx, session.ClaimName(id)) })
	if apierrors.IsNotFound(err) {
		return pool.ErrNoSession
	}
	if err != nil {
		return fmt.Errorf("%w: end a session: %w", pool.ErrClosed, err)
	}
	if pod := p.cache.session(id); pod != nil && !ended(pod) {
		p.background(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, endTimeout)
			defer cancel()
			if err := p.sessionIn(pod).End(ctx); err != nil {
				p.log.Debug("The runner of a closed session could not be asked to end", "sandbox", pod.Name, "error", err)
			}
		})
	}
	return nil
}

// closeClaim finishes the claim of a session, unless it is.
func (p *Pool) closeClaim(ctx context.Context, name string) error {
	c, err := p.client.SandboxV1alpha1().SandboxClaims(p.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || c.Status.FinishedAt != nil {
		return err
	}
	now := metav1.Now()
	status := &v1alpha1.SandboxClaimStatus{FinishedAt: &now}
	status.Conditions = duckv1.Conditions{{
		Type: v1alpha1.ConditionReady, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonClosed,
		Message: "its caller has closed the session", LastTransitionTime: apis.VolatileTime{Inner: now},
	}}
	return p.finish(ctx, name, c.UID, status)
}

// dialer connects to the runner of a session's Pod.
type dialer struct {
	owner *Pool
	pod   *corev1.Pod
}

// Dial implements remote.Dialer.
func (d *dialer) Dial(ctx context.Context) (net.Conn, string, error) {
	token, err := d.owner.keys.token(ctx, d.pod)
	if err != nil {
		return nil, "", err
	}
	conn, err := connectTo(ctx, runner(d.pod))
	return conn, token, err
}

// endKnown waits for the end of a session whose runner did not answer, and returns
// it; nil if it has not ended.
func (p *Pool) endKnown(ctx context.Context, id string) error {
	deadline := time.Now().Add(statusGrace)
	for first := true; first || pause.For(ctx, lookAgain) && time.Now().Before(deadline); first = false {
		if pod := p.cache.session(id); pod != nil && !ended(pod) {
			continue
		}
		if err := p.missing(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
