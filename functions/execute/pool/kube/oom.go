package kube

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// statusGrace is how long a Pod's last status may take after its runner is gone:
// the node reports it, and the API server passes it on.
const statusGrace = 3 * time.Second

// reasonOOMKilled is what container runtimes say of a container in which the
// kernel has killed for memory.
const reasonOOMKilled = "OOMKilled"

const killed = 128 + int(unix.SIGKILL)

// end notes that the Pod has ended, and how, if that was seen.
func (s *sandbox) end(pod *corev1.Pod) {
	s.lost()
	select {
	case s.ended <- pod:
	default: // it is known already, or nobody asks
	}
}

// outOfMemory waits for the status of a Pod whose runner is gone, and reports
// whether the kernel has killed it for memory.
func (s *sandbox) outOfMemory(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, statusGrace)
	defer cancel()
	select {
	case pod := <-s.ended:
		return oomKilled(pod)
	case <-ctx.Done():
		return false
	}
}

// oomKilled reports whether the runner, the first process of a Pod's first
// container, was killed, and the container had used up its memory. A runner that
// ends by itself has another exit code, also where a program of it was killed for
// memory before.
func oomKilled(pod *corev1.Pod) bool {
	if pod == nil || len(pod.Spec.Containers) == 0 {
		return false
	}
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; c.Name == pod.Spec.Containers[0].Name && end != nil {
			return end.Reason == reasonOOMKilled && end.ExitCode == int32(killed)
		}
	}
	return false
}

// killedForMemory is how a program ended whose whole sandbox was killed for
// memory, and could not say so itself.
func killedForMemory(after time.Duration) pool.Outcome {
	o := pool.Killed(execution.StatusOutOfMemory, after,
		"the whole sandbox was killed at the memory limit; its files and the last of its output are lost, and its processor time is not known")
	o.Usage.OOMKills = 1
	return o
}
