// Package lock is the one lock of a sandbox: the label sandbox.preheat.dev/state
// of its Pod, which leaves "warm" once and for all. Every change is a JSON
// Patch that tests for "warm" first. The API server applies test and change as
// one transaction, so that of all who try, claimants and the controller alike,
// exactly one wins (invariants I1 to I3).
package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// PatchType is the type of the patches in this package.
const PatchType = types.JSONPatchType

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Holder is who claims a sandbox.
type Holder struct {
	// Claim is the name of the claim.
	Claim string
	// UID is the claim's, if it is known.
	UID types.UID
	// Deadline is how long the Pod may live from its own start on, as the
	// last resort of the node when everybody else is gone; 0 sets none.
	Deadline time.Duration
	// Trace is the holder's traceparent, if it is traced.
	Trace string
	// Session is what the Pod says of the session that it is for, if it is for
	// one. The Pod must have annotations.
	Session string
}

// Claim returns the patch that makes a warm sandbox the holder's. The Pod is
// no longer owned by its pool then: whatever happens to the pool, the garbage
// collector leaves a claimed sandbox alone.
func Claim(h Holder) ([]byte, error) {
	ops := []operation{
		label("test", v1alpha1.LabelState, v1alpha1.StateWarm),
		label("replace", v1alpha1.LabelState, v1alpha1.StateClaimed),
		label("add", v1alpha1.LabelClaim, h.Claim),
		{Op: "add", Path: "/metadata/ownerReferences", Value: []any{}},
	}
	if h.UID != "" {
		ops = append(ops, label("add", v1alpha1.LabelClaimUID, string(h.UID)))
	}
	if h.Trace != "" {
		ops = append(ops, label("add", v1alpha1.LabelTrace, h.Trace))
	}
	if h.Session != "" {
		ops = append(ops, operation{Op: "add", Path: "/metadata/annotations/" + escape(v1alpha1.AnnotationSession), Value: h.Session})
	}
	if h.Deadline > 0 {
		ops = append(ops, deadlineOf(h.Deadline))
	}
	return encode(ops)
}

// Limit returns the patch that bounds how long a Pod of a holder may live; see
// Holder.Deadline.
func Limit(claim string, deadline time.Duration) ([]byte, error) {
	return encode([]operation{label("test", v1alpha1.LabelClaim, claim), deadlineOf(deadline)})
}

// deadlineOf rounds up to whole seconds, within what the API takes: 1 to
// MaxInt32.
func deadlineOf(d time.Duration) operation {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return operation{Op: "add", Path: "/spec/activeDeadlineSeconds", Value: min(max(seconds, 1), math.MaxInt32)}
}

// Retire returns the patch that takes a warm sandbox out of everybody's reach,
// after which it may be deleted.
func Retire() ([]byte, error) {
	return encode([]operation{
		label("test", v1alpha1.LabelState, v1alpha1.StateWarm),
		label("replace", v1alpha1.LabelState, v1alpha1.StateRetired),
	})
}

// Discard returns the patch by which a holder gives up a sandbox that it has
// won and not used. Nobody can claim it again.
//
// A later claim of the same name keeps its sandbox where h has a UID.
func Discard(h Holder) ([]byte, error) {
	ops := []operation{
		label("test", v1alpha1.LabelState, v1alpha1.StateClaimed),
		label("test", v1alpha1.LabelClaim, h.Claim),
	}
	if h.UID != "" {
		ops = append(ops, label("test", v1alpha1.LabelClaimUID, string(h.UID)))
	}
	return encode(append(ops, label("replace", v1alpha1.LabelState, v1alpha1.StateRetired)))
}

// Lost reports whether a patch failed because the sandbox is no longer there
// to be won. Any other error leaves open whether the patch was applied.
//
// The API server answers 422 (Invalid) both when a test of a JSON Patch fails,
// without causes, and when the patched Pod is not valid, with a cause for each
// field that is wrong (k8s.io/apiserver, endpoints/handlers/patch.go).
func Lost(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}

func label(op, name, value string) operation {
	return operation{Op: op, Path: "/metadata/labels/" + escape(name), Value: value}
}

// escape makes a name a part of a JSON Pointer (RFC 6901).
func escape(name string) string { return strings.ReplaceAll(name, "/", "~1") }

func encode(ops []operation) ([]byte, error) {
	data, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return data, nil
}
