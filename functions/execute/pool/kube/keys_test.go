package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// TestKeyring: the keys are read when one is missing, and not before.
func TestKeyring(t *testing.T) {
	first, second := token.NewSecret("ns", time.Unix(0, 0)), token.NewSecret("ns", time.Unix(1, 0))
	client := fake.NewClientset(first)
	reads := 0
	var fail error
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		reads++
		return fail != nil, nil, fail
	})
	k := newKeyring(client.CoreV1().Secrets("ns"))
	id := func(s *corev1.Secret) string {
		keys, err := token.FromSecret(s)
		if err != nil {
			t.Fatal(err)
		}
		return keys.Current()
	}
	check := func(what, key, wantReads string, want error) {
		t.Helper()
		before := reads
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Annotations: map[string]string{v1alpha1.AnnotationTokenKey: key}}}
		got, err := k.token(t.Context(), pod)
		if !errors.Is(err, want) || (want == nil) != (len(got) == 64) {
			t.Errorf("%s: %q, %v; want %v", what, got, err, want)
		}
		if n := strings.Repeat("r", reads-before); n != wantReads {
			t.Errorf("%s: %d reads, want %d", what, len(n), len(wantReads))
		}
	}
	check("the first", id(first), "r", nil)
	check("known", id(first), "", nil)
	check("not there", id(second), "r", errUnknownKey)
	fail = errors.New("no answer")
	check("no answer", id(second), "r", fail)
	check("known without an answer", id(first), "", nil)
	fail = nil
	if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), second, "ns"); err != nil {
		t.Fatal(err)
	}
	check("rotated", id(second), "r", nil)
	check("removed", id(first), "r", errUnknownKey)
}

func TestATokenInThePodIsUsed(t *testing.T) {
	k := newKeyring(fake.NewClientset().CoreV1().Secrets("ns"))
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: v1alpha1.EnvToken, Value: "t"}}}}}}
	if got, err := k.token(t.Context(), pod); got != "t" || err != nil {
		t.Errorf("token %q, %v", got, err)
	}
}
