package kube

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// A sandbox that died before its execution began to follow it does not leave the
// execution waiting for its runner.
func TestSandboxThatDiedBeforeItWasHeldIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*cache, *corev1.Pod)
		lost   bool
	}{
		"alive":   {func(*cache, *corev1.Pod) {}, false},
		"failed":  {func(c *cache, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed; c.set(p) }, true},
		"stopped": {func(c *cache, p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded; c.set(p) }, true},
		"gone":    {func(c *cache, p *corev1.Pod) { c.remove(p) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := warmPod("p", "r", nil)
				c := testCache(t, e)
				test.before(c, e.pod.DeepCopy())
				conn, runner := net.Pipe()
				defer func() { _, _ = conn.Close(), runner.Close() }()
				c.hold(&sandbox{name: "p", conn: conn})
				time.AfterFunc(time.Hour, func() { _ = runner.Close() })
				_, err := conn.Read(make([]byte, 1))
				if got := errors.Is(err, os.ErrDeadlineExceeded); got != test.lost {
					t.Errorf("the execution hears of its end: %v, want %v", got, test.lost)
				}
			})
		})
	}
}

// A claim that has ended while its caller waited is followed by another one,
// also when nothing was heard of its sandbox.
func TestWaitingCallerHearsOfTheEndOfItsClaim(t *testing.T) {
	for name, end := range map[string]func(context.Context, *Pool, *v1alpha1.SandboxClaim) error{
		"its sandbox was lost": func(ctx context.Context, p *Pool, c *v1alpha1.SandboxClaim) error {
			c.Status.FinishedAt = &metav1.Time{Time: time.Now()}
			_, err := p.client.SandboxV1alpha1().SandboxClaims(p.namespace).UpdateStatus(ctx, c, metav1.UpdateOptions{})
			return err
		},
		"it was deleted": func(ctx context.Context, p *Pool, c *v1alpha1.SandboxClaim) error { return p.deleteClaim(ctx, c.Name) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _, preheat := testPool(t, testCache(t))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				failed := make(chan error, 1)
				go func() { // received below
					_, err := p.Claim(ctx, pool.Claim{Language: "python", Deadline: time.Now().Add(2 * time.Hour)})
					failed <- err
				}()
				only := func() *v1alpha1.SandboxClaim {
					t.Helper()
					claims, err := preheat.SandboxV1alpha1().SandboxClaims("n").List(ctx, metav1.ListOptions{})
					if err != nil || len(claims.Items) != 1 {
						t.Fatalf("claims %+v, %v", claims, err)
					}
					return &claims.Items[0]
				}
				synctest.Wait()
				first := only()
				time.Sleep(time.Minute) // of the bubble's clock
				synctest.Wait()
				if c := only(); c.Name != first.Name {
					t.Error("a claim that goes on was replaced")
				}
				if err := end(ctx, p, first); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if c := only(); c.Name == first.Name {
					t.Error("the caller still waits for the claim that has ended")
				}
				cancel()
				if err := <-failed; !errors.Is(err, pool.ErrNoSandbox) {
					t.Error(err)
				}
				p.work.Wait()
			})
		})
	}
}
