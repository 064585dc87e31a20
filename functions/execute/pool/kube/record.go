package kube

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// annotationDelivery tells, on the claim of an event, which delivery made it.
const annotationDelivery = v1alpha1.GroupName + "/delivery"

const (
	// answerBytes is what a claim holds of a compressed answer; the resource
	// definition says the same. inflatedBytes bounds what is read back.
	answerBytes   = 192 << 10
	inflatedBytes = 64 << 20
	// lookAtFirst and lookAtMost are the pauses between looks at a claim that
	// another delivery runs.
	lookAtFirst = 50 * time.Millisecond
	lookAtMost  = time.Second
	// answerGrace is how long after a claim's end its answer may still come:
	// the sandbox ends before the answer is written.
	answerGrace = 5 * time.Second
)

// claimOf names the claim of an event.
func claimOf(event string) string { return "event-" + event }

// Finish ends the claim of an event with its answer, and so its sandbox. An
// empty answer says that there is none and never will be. It tries for a
// while, whatever ctx says: the answer is lost otherwise. It fails when the
// claim is gone, and leaves alone one that a later delivery has made.
func (p *Pool) Finish(ctx context.Context, event string, answer []byte) error {
	status, err := finished(answer, time.Now())
	if err != nil {
		return err
	}
	uid, known := p.running.end(event)
	if !known {
		return fmt.Errorf("record the answer of an event: %w: %s", errNotRunning, claimOf(event))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	lasting := func(err error) bool {
		return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || errors.Is(err, errNotRunning)
	}
	err = retry(ctx, lasting, func(ctx context.Context) error { return p.finish(ctx, claimOf(event), uid, status) })
	if err != nil {
		return fmt.Errorf("record the answer of an event in claim %s: %w", claimOf(event), err)
	}
	return nil
}

// errNotRunning: the claim of an event is not that of a program of this process.
var errNotRunning = errors.New("no program of this event is running here")

// finish writes the status of a claim, if it has this UID. The API server does
// not look at a UID in a patch of a status, but at the version.
func (p *Pool) finish(ctx context.Context, name string, uid types.UID, status *v1alpha1.SandboxClaimStatus) error {
	claims := p.client.SandboxV1alpha1().SandboxClaims(p.namespace)
	c, err := claims.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if c.UID != uid {
		return fmt.Errorf("%w: another delivery has made a claim of that name", errNotRunning)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": c.ResourceVersion}, "status": status})
	if err != nil {
		return fmt.Errorf("encode a claim's end: %w", err)
	}
	_, err = claims.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// finished is what a claim's status becomes when it ends with an answer.
func finished(answer []byte, now time.Time) (*v1alpha1.SandboxClaimStatus, error) {
	status := &v1alpha1.SandboxClaimStatus{FinishedAt: &metav1.Time{Time: now}}
	ready := apis.Condition{
		Type: v1alpha1.ConditionReady, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonInterrupted,
		Message: "the execution began and has no answer", LastTransitionTime: apis.VolatileTime{Inner: metav1.NewTime(now)},
	}
	if len(answer) > 0 {
		ready.Reason, ready.Message = v1alpha1.ReasonAnswered, "the event has been answered"
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := w.Write(answer)
		if err = errors.Join(err, w.Close()); err != nil {
			return nil, fmt.Errorf("compress an answer: %w", err)
		}
		if packed.Len() > answerBytes {
			return nil, &pool.TooLargeError{Size: packed.Len(), Max: answerBytes}
		}
		status.Answer = packed.Bytes()
	}
	status.Conditions = duckv1.Conditions{ready}
	return status, nil
}

// Await returns the answer to an event that another delivery runs or ran, for
// which it waits until that one's time is over. It returns nothing and no
// error when the other delivery has given up before the program began.
func (p *Pool) Await(ctx context.Context, event string) ([]byte, error) {
	wait := lookAtFirst
	var ended time.Time
	for {
		c, err := p.lookAt(ctx, event)
		now := time.Now()
		switch {
		case err == nil && len(c.Status.Answer) > 0:
			return inflate(c.Status.Answer)
		case apierrors.IsNotFound(err):
			return nil, nil
		case err == nil && over(c, now) && c.Annotations[v1alpha1.AnnotationBegun] == "false":
			return nil, p.discardUnbegun(ctx, c)
		case err == nil && endedFor(c, v1alpha1.ReasonAnswerDropped):
			return nil, pool.ErrAnswerDropped
		case err == nil && over(c, now):
			if ended.IsZero() {
				ended = now
			}
			if endedFor(c, v1alpha1.ReasonInterrupted) || now.Sub(ended) > answerGrace {
				return nil, pool.ErrInterrupted
			}
		case err != nil && ctx.Err() == nil:
			return nil, fmt.Errorf("%w: look at the claim of an event: %w", pool.ErrClosed, err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-p.ctx.Done():
			return nil, pool.ErrClosed
		case <-time.After(wait):
		}
		wait = min(wait*3/2, lookAtMost)
	}
}

func (p *Pool) lookAt(ctx context.Context, event string) (*v1alpha1.SandboxClaim, error) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	return p.client.SandboxV1alpha1().SandboxClaims(p.namespace).Get(ctx, claimOf(event), metav1.GetOptions{})
}

// begun marks the claim of an event before its program begins. It fails for the
// claim of another delivery: this one was given up meanwhile.
func (a *attempt) begun(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": a.uid, "annotations": map[string]string{v1alpha1.AnnotationBegun: "true"},
	}})
	if err != nil {
		return err
	}
	_, err = a.client.SandboxV1alpha1().SandboxClaims(a.namespace).Patch(ctx, a.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", errUnusable, err)
	}
	return err
}

// discardUnbegun deletes the claim of an event that ended before its program began, as
// when its claimant died in the queue: the event may be delivered again. The mark
// that its claimant would still set finds the claim gone.
func (p *Pool) discardUnbegun(ctx context.Context, c *v1alpha1.SandboxClaim) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	// The version is that without the mark.
	err := p.client.SandboxV1alpha1().SandboxClaims(p.namespace).Delete(ctx, c.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.UID, ResourceVersion: &c.ResourceVersion}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // in any case the next attempt looks again
	}
	return fmt.Errorf("%w: give up the claim of an event: %w", pool.ErrClosed, err)
}

// over reports whether nobody runs the claim's program any more, whether or
// not there is a controller that says so.
func over(c *v1alpha1.SandboxClaim, now time.Time) bool {
	end := c.Spec.Lifecycle.ShutdownTime
	return c.Status.FinishedAt != nil || end != nil && now.After(end.Time)
}

func endedFor(c *v1alpha1.SandboxClaim, reason string) bool {
	ready := c.Status.GetCondition(v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == reason
}

func inflate(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack a recorded answer: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(r, inflatedBytes))
	if err != nil {
		return nil, fmt.Errorf("unpack a recorded answer: %w", err)
	}
	return answer, nil
}

// discardClaim deletes the claim of an event whose program has not begun, so that
// it can be delivered again.
func (a *attempt) discardClaim(ctx context.Context) {
	if err := retry(ctx, nil, a.tryDiscardClaim); err != nil {
		a.log.Error("The claim of an event could not be discarded, it ends at its shutdown time", "claim", a.name, "error", err)
	}
}

// tryDiscardClaim leaves alone what another delivery has created.
func (a *attempt) tryDiscardClaim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	claims := a.client.SandboxV1alpha1().SandboxClaims(a.namespace)
	c, err := claims.Get(ctx, a.name, metav1.GetOptions{})
	if err == nil && c.Annotations[annotationDelivery] == a.id {
		err = claims.Delete(ctx, a.name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(c.UID))})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
