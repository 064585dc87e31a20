package lock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// apply does what the API server does with a patch: all of it or nothing.
func apply(t *testing.T, pod *corev1.Pod, encode func() ([]byte, error)) (*corev1.Pod, bool) {
	t.Helper()
	text, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		return pod, false
	}
	patched := &corev1.Pod{}
	if err := json.Unmarshal(after, patched); err != nil {
		t.Fatal(err)
	}
	return patched, true
}

func claim(h lock.Holder) func() ([]byte, error) {
	return func() ([]byte, error) { return lock.Claim(h) }
}

func discard(name string, uid types.UID) func() ([]byte, error) {
	return func() ([]byte, error) { return lock.Discard(lock.Holder{Claim: name, UID: uid}) }
}

// A warm sandbox is won once, by a claim or by the controller, and only its
// holder can give it up (I1, I2).
func TestOneWinner(t *testing.T) {
	warm := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels:          map[string]string{v1alpha1.LabelState: v1alpha1.StateWarm},
		OwnerReferences: []metav1.OwnerReference{{Name: "pool"}},
	}}
	held, won := apply(t, warm, claim(lock.Holder{Claim: "c", UID: "u1", Deadline: 1500 * time.Millisecond}))
	if !won || held.Labels[v1alpha1.LabelClaim] != "c" || held.Labels[v1alpha1.LabelClaimUID] != "u1" || len(held.OwnerReferences) != 0 {
		t.Fatalf("won %v: %+v", won, held.ObjectMeta)
	}
	if d := held.Spec.ActiveDeadlineSeconds; d == nil || *d != 2 {
		t.Errorf("a deadline of %v", d)
	}
	for name, patch := range map[string]func() ([]byte, error){
		"claimed again": claim(lock.Holder{Claim: "d"}), "retired": lock.Retire,
		"given up by another claim": discard("d", ""), "given up by an earlier claim of its name": discard("c", "u0"),
	} {
		if _, won := apply(t, held, patch); won {
			t.Errorf("it was %s", name)
		}
	}
	for _, uid := range []types.UID{"u1", ""} {
		if given, won := apply(t, held, discard("c", uid)); !won || given.Labels[v1alpha1.LabelState] != v1alpha1.StateRetired {
			t.Errorf("its holder, UID %q, could not give it up", uid)
		}
	}
	if retired, won := apply(t, warm, lock.Retire); !won || retired.Labels[v1alpha1.LabelState] != v1alpha1.StateRetired {
		t.Error("a warm sandbox could not be retired")
	}
}

// The API takes deadlines from one second to MaxInt32.
func TestDeadlineIsWhatTheAPITakes(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClaim: "c"}}}
	for d, want := range map[time.Duration]int64{1: 1, time.Second: 1, time.Second + 1: 2, math.MaxInt64: math.MaxInt32, -time.Hour: 1} {
		got, won := apply(t, pod, func() ([]byte, error) { return lock.Limit("c", d) })
		if !won || *got.Spec.ActiveDeadlineSeconds != want {
			t.Errorf("%v became %d s, want %d", d, *got.Spec.ActiveDeadlineSeconds, want)
		}
	}
}

// A race is lost when a test of the patch fails or the Pod is gone. A Pod that
// would not be valid is an error, which nobody must take for a lost race.
func TestLost(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a test failed": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false), true},
		"gone":          {fmt.Errorf("patch: %w", apierrors.NewNotFound(pods, "p")), true},
		"not valid": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", field.ErrorList{
			field.Invalid(field.NewPath("spec", "activeDeadlineSeconds"), 1<<40, "too large"),
		}), false},
		"conflict": {apierrors.NewConflict(pods, "p", errors.New("changed")), false},
		"no error": {nil, false},
	} {
		if got := lock.Lost(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// A sandbox that is claimed for a session says so, and none else does.
func TestSessionIsOnThePod(t *testing.T) {
	warm := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{v1alpha1.LabelState: v1alpha1.StateWarm}, Annotations: map[string]string{v1alpha1.AnnotationTokenKey: "k"},
	}}
	held, won := apply(t, warm, claim(lock.Holder{Claim: "session-a", Session: `{"language":"python"}`}))
	if !won || held.Annotations[v1alpha1.AnnotationSession] != `{"language":"python"}` || held.Annotations[v1alpha1.AnnotationTokenKey] != "k" {
		t.Errorf("won %v: %v", won, held.Annotations)
	}
	if held, won := apply(t, warm, claim(lock.Holder{Claim: "claim-a"})); !won || len(held.Annotations) != 1 {
		t.Errorf("won %v: %v", won, held.Annotations)
	}
}
