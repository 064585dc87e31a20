package pool_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/preheat-dev/preheat/controller/health"
)

// TestStoppedElectorIsSeen: of a real elector and a real informer, both are known
// to turn, and the elector that stops is named.
func TestStoppedElectorIsSeen(t *testing.T) {
	t.Parallel()
	sp := shared.Space(t)
	loops := health.New(10 * time.Second)
	config := sp.Config()
	config.Wrap(loops.Wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, sp.Namespace, "elector", client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: "me"})
	if err != nil {
		t.Fatal(err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 100 * time.Millisecond, Name: "elector",
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(sp.Namespace)).Core().V1().Pods().Informer()
	watching, stopWatching := context.WithCancel(t.Context())
	leading, stopLeading := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer stopWatching()
	defer stopLeading()
	work.Go(func() { pods.RunWithContext(watching) })
	work.Go(func() { elector.Run(leading) })

	if !cache.WaitForCacheSync(t.Context().Done(), pods.HasSynced) {
		t.Fatal("the informer has not begun")
	}
	times := map[string]bool{}
	sp.Eventually("the elector renews its Lease", func() bool {
		lease, err := sp.Kube.CoordinationV1().Leases(sp.Namespace).Get(t.Context(), "elector", metav1.GetOptions{})
		if err == nil && lease.Spec.RenewTime != nil {
			times[lease.Spec.RenewTime.String()] = true
		}
		return len(times) > 5
	})
	if err := loops.Check(); err != nil {
		t.Errorf("while both go on: %v", err)
	}
	stopLeading()
	sp.Eventually("the elector that has stopped is named", func() bool {
		err := loops.Check()
		return err != nil && strings.Contains(err.Error(), "lease elector for ") && !strings.Contains(err.Error(), "watch")
	})
	// The informer goes on.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := sp.Kube.CoreV1().Pods(sp.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sp.Eventually("the informer sees a Pod", func() bool { return len(pods.GetStore().ListKeys()) == 1 })
}
