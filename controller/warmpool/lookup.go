package warmpool

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// defaultLife is how long a claim lasts that says nothing about it.
const defaultLife = time.Hour

// ShutdownTime is when a claim's sandbox ends at the latest.
func ShutdownTime(c *v1alpha1.SandboxClaim) time.Time {
	if t := c.Spec.Lifecycle.ShutdownTime; t != nil {
		return t.Time
	}
	return c.CreationTimestamp.Add(defaultLife)
}

func (e *effects) podClient() typedcorev1.PodInterface {
	return e.reconciler.kube.CoreV1().Pods(e.pool.Namespace)
}

func (e *effects) pod(name string) *corev1.Pod {
	for _, p := range e.pods {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (e *effects) claim(name string) *v1alpha1.SandboxClaim {
	for _, c := range e.claims {
		if c.Name == name {
			return c
		}
	}
	return nil
}
