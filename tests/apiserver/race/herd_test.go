package race_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// herd is the claimants' worst behaviour: all of them run after the same
// sandbox at the moment when it becomes warm. A claim of the herd takes the
// lock first, and only the winner creates its SandboxClaim.
type herd struct {
	*race
	members []*member
	claims  atomic.Int64
	work    sync.WaitGroup
	quit    chan struct{}
}

type member struct {
	id      int
	kube    kubernetes.Interface
	preheat versioned.Interface
	queue   chan *corev1.Pod
}

// newHerd makes a herd whose members have a connection each.
func (r *race) newHerd() *herd {
	h := &herd{race: r, quit: make(chan struct{})}
	for i := range claimants {
		m := &member{id: i, queue: make(chan *corev1.Pod, 1000)}
		config := rest.CopyConfig(r.Config())
		config.UserAgent = fmt.Sprintf("herd-%d", i) // clients of one configuration share a connection
		var err error
		if m.kube, err = kubernetes.NewForConfig(config); err != nil {
			r.TB.Fatal(err)
		}
		if m.preheat, err = versioned.NewForConfig(config); err != nil {
			r.TB.Fatal(err)
		}
		h.members = append(h.members, m)
		for range perClaimant {
			h.work.Go(func() { h.hunt(m) })
		}
	}
	return h
}

// stop ends the herd, which then holds nothing any more.
func (h *herd) stop() {
	close(h.quit)
	h.work.Wait()
}

// see sets the herd on every second sandbox: the others are execute's.
func (h *herd) see(pod *corev1.Pod) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(pod.Name))
	if sum.Sum32()%2 == 0 {
		return
	}
	for _, m := range h.members {
		select {
		case m.queue <- pod:
		default: // it is busy
		}
	}
}

func (h *herd) hunt(m *member) {
	ctx := context.WithoutCancel(h.TB.Context())
	for n := 0; ; n++ {
		select {
		case <-h.quit:
			return
		case pod := <-m.queue:
			h.claim(ctx, m, pod, fmt.Sprintf("herd-%d-%s", m.id, pod.UID))
		}
	}
}

func (h *herd) claim(ctx context.Context, m *member, pod *corev1.Pod, claim string) {
	patch, err := lock.Claim(lock.Holder{Claim: claim, Deadline: 10 * time.Minute})
	if err != nil {
		h.failed("%v", err)
		return
	}
	_, err = m.kube.CoreV1().Pods(h.Namespace).Patch(ctx, pod.Name, lock.PatchType, patch, metav1.PatchOptions{})
	h.claims.Add(1)
	if lock.Lost(err) {
		return
	}
	if err != nil {
		h.failed("herd: %v", err)
		return
	}
	h.won(pod.Name, pod.UID, claim)
	api := m.preheat.SandboxV1alpha1().SandboxClaims(h.Namespace)
	_, err = api.Create(ctx, &v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec:       v1alpha1.SandboxClaimSpec{WarmPoolRef: v1alpha1.Reference{Name: pod.Labels[v1alpha1.LabelPool]}, Binding: v1alpha1.BindingClaimant},
	}, metav1.CreateOptions{})
	if err == nil {
		err = api.Delete(ctx, claim, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		h.failed("herd: %v", err)
	}
}
