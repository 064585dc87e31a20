package session_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/session"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// What is written on a Pod for a session is what is read from it.
func TestRecord(t *testing.T) {
	opened := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	spec := &v1alpha1.SandboxClaimSpec{Session: &v1alpha1.ClaimSession{Language: "c++", IdleSeconds: 60}}
	text, err := session.Annotation(spec, opened, opened.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{v1alpha1.LabelClaim: session.ClaimName("abc")}, Annotations: map[string]string{v1alpha1.AnnotationSession: text},
	}}
	second := opened.Truncate(time.Second)
	want := session.Record{Language: "c++", IdleSeconds: 60, Opened: second, Expires: second.Add(time.Hour)}
	if id, r, ok := session.Of(pod); !ok || id != "abc" || r != want {
		t.Errorf("read %q, %+v, %v", id, r, ok)
	}
	if text, err := session.Annotation(&v1alpha1.SandboxClaimSpec{}, opened, opened); err != nil || text != "" {
		t.Errorf("a single run's: %q, %v", text, err)
	}
}

func TestOtherPodsAreNoSessions(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{
		"warm":             {},
		"of a single run":  {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClaim: "claim-1"}}},
		"with a bad value": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClaim: "session-1"}, Annotations: map[string]string{v1alpha1.AnnotationSession: "{"}}},
		"with another claim": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClaim: "claim-1"}, Annotations: map[string]string{
			v1alpha1.AnnotationSession: "{}",
		}}},
	} {
		if id, _, ok := session.Of(pod); ok {
			t.Errorf("%s: it is session %q", name, id)
		}
	}
}

// The end that a runner leaves comes back from the claim's condition; whatever
// else is there is a loss.
func TestEnd(t *testing.T) {
	for message, want := range map[string]execution.SessionEnd{
		"idle": "idle", "expired": "expired", "closed": "closed", "shutdown": "shutdown", "idle\n": "idle",
		"": "sandbox_lost", "what a program wrote": "sandbox_lost",
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{}}, {State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}},
		}}}
		if end := session.EndOf(pod); end != want || session.End(session.Reason(end)) != want {
			t.Errorf("%q: %q, and %q by its reason", message, end, session.End(session.Reason(end)))
		}
	}
	if end := session.End(v1alpha1.ReasonNoSandbox); end != execution.SessionSandboxLost {
		t.Errorf("another reason: %q", end)
	}
}
