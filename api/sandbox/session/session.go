// Package session is what a session is on a cluster. Its claim has the session's
// id in its name. The claim's Pod bears what every replica of execute needs to
// know of it, so that none has to ask the API server for a run, and says at its
// end why it has ended.
package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

const prefix = "session-"

// ClaimName is the name of the claim of the session with this id.
func ClaimName(id string) string { return prefix + id }

// ID is the id of the session whose claim has this name.
func ID(claimName string) (id string, ok bool) { return strings.CutPrefix(claimName, prefix) }

// Record is what a Pod says of the session whose sandbox it is.
type Record struct {
	Language    string    `json:"language"`
	IdleSeconds int32     `json:"idleSeconds"`
	Opened      time.Time `json:"opened"`
	Expires     time.Time `json:"expires"`
}

// Annotation is the value of AnnotationSession on the Pod of a claim, and empty
// if it is not a session's. opened is when the claim was made, expires when its
// time is over.
func Annotation(spec *v1alpha1.SandboxClaimSpec, opened, expires time.Time) (string, error) {
	if spec.Session == nil {
		return "", nil
	}
	text, err := json.Marshal(Record{
		Language: spec.Session.Language, IdleSeconds: spec.Session.IdleSeconds, Opened: opened.UTC().Truncate(time.Second), Expires: expires.UTC().Truncate(time.Second),
	})
	if err != nil {
		return "", fmt.Errorf("encode what a Pod says of its session: %w", err)
	}
	return string(text), nil
}

// Of returns what a Pod says of the session whose sandbox it is. ok is false if it
// is none's.
func Of(pod *corev1.Pod) (id string, r Record, ok bool) {
	text := pod.Annotations[v1alpha1.AnnotationSession]
	id, named := ID(pod.Labels[v1alpha1.LabelClaim])
	if text == "" || !named || json.Unmarshal([]byte(text), &r) != nil {
		return "", Record{}, false
	}
	return id, r, true
}

// reasons are the reasons of a claim's Ready condition at a session's end.
var reasons = map[execution.SessionEnd]string{
	execution.SessionClosed:      v1alpha1.ReasonClosed,
	execution.SessionIdle:        v1alpha1.ReasonIdle,
	execution.SessionExpired:     v1alpha1.ReasonExpired,
	execution.SessionShutdown:    v1alpha1.ReasonShutdown,
	execution.SessionSandboxLost: v1alpha1.ReasonSandboxLost,
}

// Reason is the reason of a claim's Ready condition for a session's end.
func Reason(end execution.SessionEnd) string { return reasons[end] }

// End is the end for which a claim's Ready condition has this reason.
func End(reason string) execution.SessionEnd {
	for end, r := range reasons {
		if r == reason {
			return end
		}
	}
	return execution.SessionSandboxLost
}

// EndOf is why a Pod has ended in which a session was: what its runner has left as
// the container's termination message. The program might write there too, about
// its own session; anything else than an end of sessions counts as a loss.
func EndOf(pod *corev1.Pod) execution.SessionEnd {
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Terminated == nil {
			continue
		}
		end := execution.SessionEnd(strings.TrimSpace(s.State.Terminated.Message))
		if _, known := reasons[end]; known {
			return end
		}
	}
	return execution.SessionSandboxLost
}
