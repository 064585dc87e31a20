package kube

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// noSink takes what a program yields.
type noSink struct{ pool.Sink }

func (noSink) Started() {}

// terminated gives a Pod the status of one whose containers have ended.
func terminated(p *corev1.Pod, reason string, code int32, more ...corev1.ContainerStatus) {
	p.Status.Phase = corev1.PodFailed
	p.Spec.Containers = []corev1.Container{{Name: "sandbox"}, {Name: "other"}}
	p.Status.ContainerStatuses = append(more, corev1.ContainerStatus{
		Name: "sandbox", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}},
	})
}

// TestSandboxKilledForMemory: a runner that the kernel has killed for memory
// together with its program is the program's end, any other end is the platform's.
func TestSandboxKilledForMemory(t *testing.T) {
	other := corev1.ContainerStatus{Name: "other", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}}
	for name, test := range map[string]struct {
		happens     func(*cache, *corev1.Pod)
		outOfMemory bool
	}{
		"killed for memory": {func(c *cache, p *corev1.Pod) { terminated(p, "OOMKilled", 137); c.set(p) }, true},
		"and removed soon": {func(c *cache, p *corev1.Pod) {
			terminated(p, "OOMKilled", 137)
			c.set(p)
			c.remove(p)
		}, true},
		"removed before it was seen": {func(c *cache, p *corev1.Pod) { terminated(p, "OOMKilled", 137); c.remove(p) }, true},
		"the status comes late": {func(c *cache, p *corev1.Pod) {
			time.Sleep(2 * time.Second)
			terminated(p, "OOMKilled", 137)
			c.set(p)
		}, true},
		"killed":                    {func(c *cache, p *corev1.Pod) { terminated(p, "Error", 137); c.set(p) }, false},
		"ended by itself":           {func(c *cache, p *corev1.Pod) { terminated(p, "OOMKilled", 1); c.set(p) }, false},
		"another container":         {func(c *cache, p *corev1.Pod) { terminated(p, "Error", 137, other); c.set(p) }, false},
		"deleted":                   {func(c *cache, p *corev1.Pod) { c.remove(p) }, false},
		"evicted":                   {func(c *cache, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed; c.set(p) }, false},
		"nothing is heard of it":    {func(*cache, *corev1.Pod) {}, false},
		"the status comes too late": {func(c *cache, p *corev1.Pod) { time.Sleep(time.Minute); terminated(p, "OOMKilled", 137); c.set(p) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := warmPod("p", "r", nil)
				c := testCache(t, e)
				p, _, _ := testPool(t, c)
				conn, runner := net.Pipe()
				s := &sandbox{owner: p, name: "p", conn: conn, runner: wire.NewClient(conn, ""), ended: make(chan *corev1.Pod, 1)}
				p.tracer = otel.Tracer(tracerName)
				c.hold(s)
				defer func() { _ = conn.Close() }()
				time.AfterFunc(time.Second, func() {
					_ = runner.Close()
					test.happens(c, e.pod.DeepCopy())
				})
				go func() { // until the runner is gone
					for buffer := make([]byte, 1<<10); ; {
						if _, err := runner.Read(buffer); err != nil {
							return
						}
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				outcome, err := s.Run(ctx, pool.Run{Language: "python"}, noSink{})
				if test.outOfMemory {
					if err != nil || outcome.Status != execution.StatusOutOfMemory || outcome.ExitCode != 137 || outcome.Signal != "SIGKILL" ||
						outcome.Usage.OOMKills != 1 || len(outcome.Notes) != 1 {
						t.Errorf("%+v, %v", outcome, err)
					}
				} else if !errors.Is(err, pool.ErrSandboxLost) {
					t.Errorf("%+v, %v", outcome, err)
				}
				time.Sleep(2 * time.Minute) // so that no timer is left
			})
		})
	}
}
