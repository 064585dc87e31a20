package kube

import (
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// Whoever took the Pod, the node learns how long it may live: from the
// controller as it binds, or else from whoever runs the program.
func TestConnectKnowsTheDeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for name, deadline := range map[string]*int64{"taken by its claimant": nil, "bound by the controller": ptr.To[int64](60)} {
		pod := warmPod("p", "r", func(p *corev1.Pod) {
			p.Status.PodIP = "127.0.0.1"
			p.Spec.ActiveDeadlineSeconds = deadline
			p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: v1alpha1.EnvListen, Value: l.Addr().String()}}}}
		}).pod
		a := &attempt{
			Pool:  &Pool{reach: testReach(t, nil), cache: testCache(t, newEntry(pod, time.Now()))},
			offer: offer{pool: &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "code"}}},
			want:  pool.Claim{Deadline: time.Now().Add(time.Minute)},
		}
		s, err := a.connect(t.Context(), pod, dial(t.Context(), pod))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = s.conn.Close()
		if told := s.lifetime == 0; told != (deadline != nil) {
			t.Errorf("%s: it may live %s", name, s.lifetime)
		}
	}
}
