package kube

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// answer plays a runner: it is ready for every connection and serves it. It
// ends with l.
func answer(l net.Listener, serve func(*wire.Server)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s := wire.NewServer(conn)
		if s.Ready() == nil {
			serve(s)
		}
		_ = conn.Close()
	}
}

// Whoever took the Pod, the node learns how long it may live: from the
// controller as it binds, or else from whoever runs the program.
func TestConnectKnowsTheDeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go answer(l, func(*wire.Server) {})
	for name, deadline := range map[string]*int64{"taken by its claimant": nil, "bound by the controller": ptr.To[int64](60)} {
		pod := warmPod("p", "r", func(p *corev1.Pod) {
			p.Status.PodIP = "127.0.0.1"
			p.Spec.ActiveDeadlineSeconds = deadline
			p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: v1alpha1.EnvListen, Value: l.Addr().String()}}}}
		}).pod
		a := &attempt{
			Pool:  &Pool{keys: newKeyring(nil), reach: testReach(t, nil), cache: testCache(t, newEntry(pod, time.Now()))},
			offer: offer{pool: &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "code"}}},
			want:  pool.Claim{Deadline: time.Now().Add(time.Minute)},
		}
		s, err := a.connect(t.Context(), pod, a.dial(t.Context(), pod))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = s.conn.Close()
		if told := s.lifetime == 0; told != (deadline != nil) {
			t.Errorf("%s: it may live %s", name, s.lifetime)
		}
	}
}

// The runner hears the token while the sandbox is being claimed, and one that
// is not ready is no sandbox.
func TestReach(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hellos := make(chan wire.Hello, 1)
	go answer(l, func(s *wire.Server) {
		h, err := s.Hello()
		if err != nil {
			t.Error(err)
		}
		hellos <- h
	})
	conn, _, err := greet(t.Context(), l.Addr().String(), "t", false)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if h := <-hellos; h.Token != "t" {
		t.Errorf("the hello is %+v", h)
	}
	_ = l.Close()
	if _, _, err := greet(t.Context(), l.Addr().String(), "t", false); err == nil {
		t.Error("reached nobody")
	}
}

// A runner that says nothing is waited for until the claim ends.
func TestReachEndsWithTheClaim(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		cancel()
		_, _ = conn.Read(make([]byte, 1)) // until the other end closes
		_ = conn.Close()
	}()
	if _, _, err := greet(ctx, l.Addr().String(), "t", false); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
