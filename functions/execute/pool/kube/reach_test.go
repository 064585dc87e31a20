package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// testReach is a reach that probes what target returns, by default nothing.
func testReach(t *testing.T, target func(string) (*corev1.Pod, bool)) *reach {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if target == nil {
		target = func(string) (*corev1.Pod, bool) { return nil, false }
	}
	r := newReach(ctx, target, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	r.young = time.Time{}
	t.Cleanup(func() { cancel(); r.stop() })
	return r
}

// podAt is a warm sandbox whose runner listens at an address.
func podAt(address, node string) *corev1.Pod {
	return warmPod("p", "r", func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.Status.PodIP = "127.0.0.1"
		p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: v1alpha1.EnvListen, Value: address}}}}
	}).pod
}

// A process whose Pod the network does not know yet is ready, and its claims
// wait until a runner is reached, but not for ever.
func TestYoungProcessWaitsForItsRunners(t *testing.T) {
	for name, after := range map[string]time.Duration{"reached soon": 3 * time.Second, "not reached": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unreachable := podAt("", "n")
				r := testReach(t, func(string) (*corev1.Pod, bool) { return unreachable, true })
				start := time.Now()
				r.young = start.Add(youth)
				for range breakAfter {
					r.report("code", unreachable, errNoRoute)
				}
				if err := r.ready([]string{"code"}); err != nil {
					t.Errorf("it is not ready: %v", err)
				}
				if after > 0 {
					time.AfterFunc(after, func() { r.report("code", unreachable, nil) })
				}
				recovered := r.recovers(t.Context(), "code", start.Add(time.Minute))
				waited := time.Since(start)
				if recovered != (after > 0) || recovered && waited >= youth || !recovered && waited < youth {
					t.Errorf("recovered %t after %s", recovered, waited)
				}
				if err := r.ready([]string{"code"}); (err == nil) != recovered {
					t.Errorf("then it is ready: %v", err)
				}
			})
		})
	}
}

// Once runners cannot be reached, claims are refused until a probe reaches one,
// and only those of that pool.
func TestClaimsAreRefusedUntilARunnerIsReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var mu sync.Mutex
	pod := podAt("", "n")
	probed := make(chan struct{}, 100)
	r := testReach(t, func(string) (*corev1.Pod, bool) {
		mu.Lock()
		defer mu.Unlock()
		probed <- struct{}{}
		return pod, true
	})
	opened := r.opened("code")
	for range breakAfter {
		if _, _, err := r.admit("code"); err != nil {
			t.Fatalf("refused too early: %v", err)
		}
		r.report("code", pod, errNoRoute)
	}
	<-opened
	<-probed
	if _, _, err := r.admit("code"); !errors.Is(err, pool.ErrClosed) || !errors.Is(err, errNoRoute) {
		t.Errorf("admitted with %v, want %v and %v", err, pool.ErrClosed, errNoRoute)
	}
	if _, _, err := r.admit("other"); err != nil {
		t.Errorf("the other pool: %v", err)
	}
	for _, test := range []struct {
		pools []string
		ready bool
	}{{nil, true}, {[]string{"code"}, false}, {[]string{"code", "other"}, true}, {[]string{"other", "code"}, true}} {
		if err := r.ready(test.pools); (err == nil) != test.ready {
			t.Errorf("pools %v: %v", test.pools, err)
		}
	}
	if n := testutil.ToFloat64(r.metrics.unreachable.WithLabelValues("code")); n != breakAfter {
		t.Errorf("%v unreachable sandboxes are counted, want %d", n, breakAfter)
	}
	if n := testutil.ToFloat64(r.metrics.suspended.WithLabelValues("code")); n != 1 {
		t.Errorf("preheat_pool_suspended is %v", n)
	}

	mu.Lock()
	pod = podAt(l.Addr().String(), "n")
	mu.Unlock()
	r.probes.Wait()
	if _, _, err := r.admit("code"); err != nil {
		t.Errorf("after a runner was reached: %v", err)
	}
	if r.avoids("code") != nil {
		t.Error("its node is still avoided")
	}
	if n := testutil.ToFloat64(r.metrics.suspended.WithLabelValues("code")); n != 0 {
		t.Errorf("preheat_pool_suspended is %v", n)
	}
}

// Where no sandbox is warm, one claim at a time finds out, and pauses grow
// between them.
func TestOneTrialClaimWhereNothingIsWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testReach(t, func(string) (*corev1.Pod, bool) { return nil, true })
		pod := podAt("", "n")
		for range breakAfter {
			r.report("code", pod, errNoRoute)
		}
		trials := 0
		for range 600 {
			asTrial, done, err := r.admit("code")
			if err == nil {
				if trials++; !asTrial {
					t.Fatal("a claim was admitted that is no trial")
				}
				if _, _, err := r.admit("code"); err == nil {
					t.Fatal("a second one was admitted beside it")
				}
				r.report("code", pod, errNoRoute)
			}
			done()
			time.Sleep(100 * time.Millisecond)
		}
		if trials < 5 || trials > 12 {
			t.Errorf("%d trials within a minute", trials)
		}
		if _, done, err := r.admit("code"); err == nil {
			done()
		}
		time.Sleep(probeAtMost)
		asTrial, done, err := r.admit("code")
		if err != nil || !asTrial {
			t.Fatalf("no trial after a pause: %v, %v", asTrial, err)
		}
		r.report("code", pod, nil)
		done()
		if err := r.ready([]string{"code"}); err != nil {
			t.Errorf("after a trial that succeeded: %v", err)
		}
		time.Sleep(probeAtMost) // the probe ends
	})
}

// A pool that is gone needs no probes.
func TestProbesEndWithTheirPool(t *testing.T) {
	r := testReach(t, nil)
	for range breakAfter {
		r.report("code", podAt("", "n"), errNoRoute)
	}
	r.probes.Wait()
	if err := r.refused("code"); err != nil {
		t.Errorf("a new pool of that name: %v", err)
	}
}

// Sandboxes of a node where a runner could not be reached come last.
func TestOtherNodesAreTakenFirst(t *testing.T) {
	c := testCache(t)
	for i, node := range []string{"bad", "good", "bad", "good"} {
		c.set(warmPod(fmt.Sprint(i), "r", func(p *corev1.Pod) { p.Spec.NodeName = node }).pod)
	}
	r := testReach(t, nil)
	r.report("code", podAt("", "bad"), errNoRoute)
	o := testOffer("code", "r")
	for i, want := range []string{"good", "good", "bad", "bad"} {
		if got := c.take(o, r.avoids("code")); got == nil || got.pod.Spec.NodeName != want {
			t.Fatalf("sandbox %d is %+v, want one of node %s", i, got, want)
		}
	}
}
