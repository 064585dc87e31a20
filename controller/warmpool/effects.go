package warmpool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/session"
	"github.com/preheat-dev/preheat/api/sandbox/tracecontext"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/template"
	"github.com/preheat-dev/preheat/internal/plan"
	"github.com/preheat-dev/preheat/internal/quota"
)

const (
	// maxWrites bounds a pool's API writes in flight.
	maxWrites = 16
	// writeTimeout bounds one of them.
	writeTimeout = 10 * time.Second
	// claimSlack is what a Pod may live on after its claim's end when nobody
	// is left to delete it.
	claimSlack = 10 * time.Second
	// nameSuffix is the length of a sandbox's random part. Names are unique
	// among all sandboxes ever, and with the five characters that Kubernetes
	// itself takes, one in a few thousand comes again.
	nameSuffix = 10
)

// effects carries out one decision.
type effects struct {
	reconciler *poolReconciler
	pool       *v1alpha1.SandboxWarmPool
	blueprint  *template.Blueprint
	// traces are those of the claims that made the creations necessary.
	traces []string
	*observation

	// mu guards the memory and the errors while writes run side by side.
	mu   sync.Mutex
	errs []error
}

// carryOut does what was decided, claims first, and waits for it.
func (e *effects) carryOut(ctx context.Context, a plan.Actions) error {
	var g errgroup.Group
	g.SetLimit(maxWrites)
	do := func(what string, step func(context.Context) error) {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			if err := step(ctx); err != nil {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.errs = append(e.errs, fmt.Errorf("%s: %w", what, err))
			}
			return nil
		})
	}
	for _, b := range a.Bind {
		do("bind "+b.Sandbox+" to "+b.Claim, func(ctx context.Context) error { return e.bind(ctx, b) })
	}
	for range a.Create {
		do("create a sandbox", e.create)
	}
	for _, name := range a.Retire {
		do("retire "+name, func(ctx context.Context) error { return e.retire(ctx, name) })
	}
	for _, name := range a.Delete {
		do("delete "+name, func(ctx context.Context) error { return e.delete(ctx, name) })
	}
	_ = g.Wait() // the steps report through e.errs
	return errors.Join(e.errs...)
}

// create makes one sandbox. Its name is chosen here, so that a creation whose
// answer was lost can be told from one that failed.
func (e *effects) create(ctx context.Context) error {
	name := e.pool.Name + "-" + utilrand.String(nameSuffix)
	start := time.Now()
	e.note(func() {
		e.memory.made[name], e.memory.born[name] = start.Add(unseenFor), refill{start, e.traces}
	})
	admission, err := e.reconciler.keys.admission(ctx, e.pool.Namespace, name)
	if err == nil {
		_, err = e.podClient().Create(ctx, e.blueprint.Pod(e.pool, name, admission), metav1.CreateOptions{})
	}
	if err == nil {
		return nil
	}
	e.note(func() {
		if delete(e.memory.made, name); ambiguous(err) {
			e.memory.made[name] = time.Now().Add(doubtFor)
		}
		e.memory.backoff = e.memory.backoff.Failed(e.blueprint.Revision, refusal(err), time.Now())
	})
	e.reconciler.tracer.refill(ctx, e.pool, name, refill{start, e.traces}, err)
	return err
}

// ambiguous reports whether a write may have been carried out despite err.
func ambiguous(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer at all
	}
	code := status.Status().Code
	return code >= 500 || code == 0
}

// refusal says why a sandbox could not be created.
func refusal(err error) plan.Problem {
	p := plan.Problem{Reason: v1alpha1.ReasonCreateFailed, Message: err.Error()}
	switch {
	case quota.IsExceeded(err):
		p.Reason = v1alpha1.ReasonQuotaExceeded
	case apierrors.IsForbidden(err), strings.Contains(err.Error(), "admission webhook"):
		p.Reason = v1alpha1.ReasonForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		p.Reason = v1alpha1.ReasonInvalidPod
	}
	return p
}

// bind gives a warm sandbox to a claim that waits.
func (e *effects) bind(ctx context.Context, b plan.Binding) (err error) {
	claim := e.claim(b.Claim)
	pod := e.pod(b.Sandbox)
	if claim == nil || pod == nil {
		return nil // gone meanwhile
	}
	ctx, end := e.reconciler.tracer.bind(ctx, claim, pod)
	defer func() { end(err) }()
	record, err := session.Annotation(&claim.Spec, claim.CreationTimestamp.Time, ShutdownTime(claim))
	if err != nil {
		return err
	}
	holder := lock.Holder{Claim: claim.Name, UID: claim.UID, Trace: tracecontext.Of(ctx), Session: record}
	if left := ShutdownTime(claim).Sub(e.now); left > 0 {
		holder.Deadline = left + claimSlack
		if pod.Status.StartTime != nil {
			holder.Deadline += max(0, e.now.Sub(pod.Status.StartTime.Time))
		}
	}
	patch, err := lock.Claim(holder)
	if err != nil {
		return err
	}
	_, err = e.podClient().Patch(ctx, pod.Name, lock.PatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		e.note(func() { e.memory.bound[claim.UID], e.memory.moved[pod.Name] = pod.Name, plan.Claimed })
	case lock.Lost(err):
		return nil // someone else was faster, the cache will tell
	}
	return err
}

// retire takes a sandbox out of the claimants' reach, and then deletes it.
func (e *effects) retire(ctx context.Context, name string) error {
	patch, err := lock.Retire()
	if err != nil {
		return err
	}
	_, err = e.podClient().Patch(ctx, name, lock.PatchType, patch, metav1.PatchOptions{})
	if lock.Lost(err) {
		return nil // it has been claimed, or is gone
	}
	if err != nil {
		return err
	}
	e.note(func() { e.memory.moved[name] = plan.Retired })
	return e.delete(ctx, name)
}

// delete destroys a sandbox that is nobody's any more.
func (e *effects) delete(ctx context.Context, name string) (err error) {
	pod := e.pod(name)
	if pod == nil {
		return nil
	}
	ctx, end := e.reconciler.tracer.destroy(ctx, pod)
	defer func() { end(err) }()
	err = e.podClient().Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	e.note(func() { e.memory.deleted[name] = true })
	return nil
}

func (e *effects) note(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}
