package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// What the API server answers becomes an error of the contract.
func TestExplain(t *testing.T) {
	claims := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "sandboxclaims"}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want error
	}{
		"over quota":         {context.Background(), apierrors.NewForbidden(claims, "c", errors.New("exceeded quota: q, requested: 1")), pool.ErrOverQuota},
		"too many requests":  {context.Background(), apierrors.NewTooManyRequests("slow down", 1), pool.ErrOverQuota},
		"forbidden":          {context.Background(), apierrors.NewForbidden(claims, "c", errors.New("no rights")), pool.ErrClosed},
		"conflict":           {context.Background(), apierrors.NewConflict(claims, "c", errors.New("changed")), pool.ErrClosed},
		"internal error":     {context.Background(), apierrors.NewInternalError(errors.New("broken")), pool.ErrClosed},
		"timeout":            {context.Background(), context.DeadlineExceeded, pool.ErrClosed},
		"server gone":        {context.Background(), io.ErrUnexpectedEOF, pool.ErrClosed},
		"the caller is gone": {over, context.Canceled, pool.ErrNoSandbox},
	} {
		got := (&attempt{}).explain(test.ctx, "create a claim", test.err)
		if !errors.Is(got, test.want) || !errors.Is(got, test.err) {
			t.Errorf("%s: %v, want it to be %v and to hold %v", name, got, test.want, test.err)
		}
	}
}

// Only what is warm, ready and untried is a candidate, the latest edition first.
func TestTake(t *testing.T) {
	c := testCache(t,
		warmPod("old", "r1", nil), warmPod("new", "r2", nil),
		warmPod("unready", "r2", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }),
		warmPod("starting", "r2", func(p *corev1.Pod) { p.Status.PodIP = "" }),
		warmPod("ended", "r2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		warmPod("ending", "r2", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		warmPod("claimed", "r2", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelState] = v1alpha1.StateClaimed }),
		warmPod("elsewhere", "r2", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelPool] = "other" }),
	)
	o := testOffer("code", "r2")
	for _, want := range []string{"new", "old"} {
		e := c.take(o, nil)
		if e == nil || e.pod.Name != want {
			t.Fatalf("took %+v, want %s", e, want)
		}
	}
	if e := c.take(o, nil); e != nil {
		t.Fatalf("took %s, which is no candidate", e.pod.Name)
	}
}

// The oldest is claimed first, as the controller does it, but not when another
// replica is after the same ones.
func TestTheOldestIsTakenFirst(t *testing.T) {
	for _, lost := range []bool{false, true} {
		c := testCache(t)
		for _, i := range rand.Perm(20) {
			e := warmPod(fmt.Sprint(i), "r2", func(p *corev1.Pod) {
				p.CreationTimestamp = metav1.NewTime(time.Unix(int64(i)*60, 0))
			})
			c.set(e.pod)
		}
		if lost {
			c.lost()
		}
		inOrder := true
		for i := range 20 {
			inOrder = c.take(testOffer("code", "r2"), nil).pod.Name == fmt.Sprint(i) && inOrder
		}
		if inOrder == lost {
			t.Errorf("another replica was faster: %v, the oldest comes first: %v", lost, inOrder)
		}
	}
}

func TestGiveBack(t *testing.T) {
	c := testCache(t, warmPod("old", "r", nil))
	o := testOffer("code", "r")
	e := c.take(o, nil)
	if other := c.take(o, nil); other != nil {
		t.Fatalf("it was taken twice")
	}
	c.set(c.pods["old"].pod) // whatever is heard of it meanwhile
	if other := c.take(o, nil); other != nil {
		t.Fatalf("it was taken twice after an event")
	}
	c.release(e)
	if e := c.take(o, nil); e == nil || e.pod.Name != "old" {
		t.Errorf("took %+v, want old again", e)
	}
}

func TestRunner(t *testing.T) {
	pod := func(listen string) *corev1.Pod {
		return warmPod("p", "r", func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: v1alpha1.EnvListen, Value: listen}}}}
		}).pod
	}
	for listen, want := range map[string]string{":7070": "10.0.0.1:7070", "[::]:7070": "10.0.0.1:7070", "": "", ":0x1": "", ":99999": "", "7070": ""} {
		if address := runner(pod(listen)); address != want {
			t.Errorf("%q: address %q, want %q", listen, address, want)
		}
	}
}

// The Pod's own deadline leaves the claim its time, whatever the clocks say.
func TestLifetime(t *testing.T) {
	a := &attempt{want: pool.Claim{Deadline: time.Now().Add(time.Minute)}}
	seen := func(ago time.Duration, started time.Duration) *candidate {
		e := warmPod("p", "r", func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: time.Now().Add(-started)} })
		e.seen = time.Now().Add(-ago)
		return &e.candidate
	}
	for name, test := range map[string]struct {
		e    *candidate
		want time.Duration
	}{
		"by the node's clock":      {seen(0, time.Hour), time.Hour + time.Minute + podSlack},
		"a clock that runs behind": {seen(time.Hour, -time.Hour), time.Hour + time.Minute + podSlack},
	} {
		if got := a.lifetime(test.e); got < test.want-time.Second || got > test.want+time.Second {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
