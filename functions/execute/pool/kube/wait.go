package kube

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// defaultWait is how long a claim waits whose caller sets no deadline.
const defaultWait = time.Minute

// checkClaim is how often a claim that waits is looked at.
const checkClaim = 5 * time.Second

// patience is when a caller no longer wants a sandbox.
func patience(caller context.Context) time.Time {
	if deadline, ok := caller.Deadline(); ok {
		return deadline
	}
	return time.Now().Add(defaultWait)
}

// slow stands in queue, leaves the claim to the controller and waits until the
// Pod bound to it shows up.
func (a *attempt) slow(caller context.Context) (*sandbox, error) {
	w := &waiter{
		claim: a.name, lowPriority: a.want.Event != "", since: a.since,
		admitted: make(chan struct{}), bound: make(chan *corev1.Pod, 1), available: make(chan struct{}, 1),
	}
	if !a.trial {
		w.unreachable = a.reach.opened(a.pool.Name)
	}
	a.cache.join(a.pool.Name, w)
	defer a.cache.leave(a.pool.Name, w)
	if err := a.awaitAdmission(caller, w); err != nil {
		return nil, err
	}

	wait := time.Until(a.end)
	ctx, cancel := context.WithTimeout(caller, bindTimeout)
	err := a.create(ctx, v1alpha1.BindingController, wait)
	cancel()
	if err != nil {
		a.discard(nil)
		return nil, a.explain(caller, "create a claim", err)
	}
	pod, err := a.await(caller, w, wait)
	if err != nil {
		a.discard(nil)
		return nil, err
	}
	s, err := a.connect(caller, pod, a.dial(caller, pod))
	if err != nil {
		a.discard(pod)
		return nil, a.explain(caller, "claim sandbox "+pod.Name, err)
	}
	return s, nil
}

// awaitAdmission waits until the claim may be created. Nothing is left of it when it
// returns an error.
func (a *attempt) awaitAdmission(caller context.Context, w *waiter) error {
	select {
	case <-w.admitted:
		return nil
	default:
	}
	if a.want.Event != "" {
		// What has an answer already does not wait for a sandbox.
		_, err := a.lookAt(caller, a.want.Event)
		if err == nil {
			return pool.ErrDelivered
		}
		if !apierrors.IsNotFound(err) {
			return a.explain(caller, "look for an earlier delivery of an event", err)
		}
	}
	limit := time.NewTimer(time.Until(a.end))
	defer limit.Stop()
	select {
	case <-w.admitted:
		return nil
	case <-caller.Done():
		return fmt.Errorf("%w: %w", pool.ErrNoSandbox, context.Cause(caller))
	case <-limit.C:
		return pool.ErrNoSandbox
	case <-w.unreachable:
		return a.suspended()
	case <-a.ctx.Done():
		return pool.ErrClosed
	}
}

// await waits for the Pod. If the controller does not bind a warm sandbox within
// selfServeAfter, the head of the queue claims one itself, unless it is to be a
// session's: the controller may bind another one at the same time, which would stay
// for as long as the session does.
func (a *attempt) await(caller context.Context, w *waiter, wait time.Duration) (*corev1.Pod, error) {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	look := time.NewTicker(selfServeAfter)
	defer look.Stop()
	check := time.NewTicker(checkClaim)
	defer check.Stop()
	available := time.Time{}
	for {
		select {
		case pod := <-w.bound:
			if a.holds(pod) { // and not an earlier claim of the same event
				return pod, nil
			}
		case <-caller.Done():
			return nil, fmt.Errorf("%w: %w", pool.ErrNoSandbox, context.Cause(caller))
		case <-limit.C:
			return nil, pool.ErrNoSandbox
		case <-w.unreachable:
			return nil, a.suspended()
		case <-a.ctx.Done():
			return nil, pool.ErrClosed
		case <-w.available:
			if available.IsZero() {
				available = time.Now()
			}
		case now := <-look.C:
			_, first := a.cache.waiting(a.pool.Name, w)
			if !first || a.session != nil || !available.IsZero() && now.Sub(available) < selfServeAfter {
				continue
			}
			pod, err := a.selfServe(caller)
			if err != nil {
				a.log.Warn("A waiting claim could not take a sandbox itself", "pool", a.pool.Name, "error", err)
			}
			if pod != nil {
				return pod, nil
			}
			available = time.Time{}
		case <-check.C:
			if err := a.stillWaits(caller); err != nil {
				return nil, err
			}
		}
	}
}

// stillWaits returns an error if the claim has ended, so that no sandbox will
// come: it was deleted, or bound to a sandbox that died. If that happened while
// a watch was interrupted, nobody hears of that sandbox.
func (a *attempt) stillWaits(caller context.Context) error {
	ctx, cancel := context.WithTimeout(caller, bindTimeout)
	defer cancel()
	c, err := a.client.SandboxV1alpha1().SandboxClaims(a.namespace).Get(ctx, a.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && over(c, time.Now()) {
		return fmt.Errorf("%w: claim %s has ended", errUnusable, a.name)
	}
	return nil // what else goes wrong may pass
}

// selfServe takes a sandbox for a claim that the controller has not served.
func (a *attempt) selfServe(caller context.Context) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(caller, bindTimeout)
	defer cancel()
	e, d, err := a.candidate(ctx)
	if e == nil {
		return nil, err
	}
	defer d.cancel()
	return a.win(ctx, e)
}

// suspended is the error of a claim that waited when runners could no longer be
// reached.
func (a *attempt) suspended() error {
	return cmp.Or(a.reach.refused(a.pool.Name), fmt.Errorf("%w: runners could not be reached", pool.ErrClosed))
}
