package template

import (
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

func TestIsolationIsWhatAConnectionShows(t *testing.T) {
	now := time.Now()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := int32(l.Addr().(*net.TCPAddr).Port)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{v1alpha1.LabelTemplate: "t", v1alpha1.LabelState: v1alpha1.StateWarm}},
		Status: corev1.PodStatus{PodIP: "127.0.0.1", Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
		}},
	}
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	i := &isolation{pods: corelisters.NewPodLister(pods), settled: settledAfter, found: map[types.NamespacedName]finding{}}
	tmpl := &v1alpha1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "u"}, Spec: v1alpha1.SandboxTemplateSpec{RunnerPort: port}}
	check := func(what string, at time.Duration, want corev1.ConditionStatus, reason string, next time.Duration) {
		t.Helper()
		c, again := i.check(t.Context(), tmpl, now.Add(at))
		if c.Status != want || c.Reason != reason || again.Sub(now) != next {
			t.Errorf("%s: %s %s, again after %s; want %s %s, %s", what, c.Status, c.Reason, again.Sub(now), want, reason, next)
		}
	}
	check("no sandbox", 0, corev1.ConditionUnknown, v1alpha1.ReasonUntried, settledAfter)
	if err := pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	check("a new sandbox", 9*time.Second, corev1.ConditionUnknown, v1alpha1.ReasonUntried, 9*time.Second+settledAfter)
	check("an open network", 10*time.Second, corev1.ConditionFalse, v1alpha1.ReasonNotEnforced, 10*time.Second+tryOpenAgain)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	check("known to be open", 20*time.Second, corev1.ConditionFalse, v1alpha1.ReasonNotEnforced, 10*time.Second+tryOpenAgain)
	check("a shut network", time.Minute, corev1.ConditionTrue, "", time.Minute+tryShutAgain)
	if err := pods.Delete(pod); err != nil {
		t.Fatal(err)
	}
	check("known to be shut", 2*time.Minute, corev1.ConditionTrue, "", time.Minute+tryShutAgain)
	check("no sandbox to try again", time.Hour, corev1.ConditionTrue, "", time.Hour+settledAfter)
	tmpl.UID = "another"
	check("another template of that name", time.Hour, corev1.ConditionUnknown, v1alpha1.ReasonUntried, time.Hour+settledAfter)
}
