// Package fakenode plays the nodes of a cluster that has none: Pods of sandboxes
// become ready, fail or get stuck as a test wants it, and their runners take
// runs over real connections without running anything, unless Options.Start
// makes real ones. It reports what was done to each sandbox.
package fakenode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Fate is what becomes of a new Pod.
type Fate int

// The fates.
const (
	// Ready: the Pod becomes ready.
	Ready Fate = iota
	// Unpullable: its image cannot be pulled.
	Unpullable
	// Unschedulable: no node takes it.
	Unschedulable
	// Crashes: its program ends before it is ready.
	Crashes
	// Stuck: nothing happens.
	Stuck
)

// workers bounds the status writes in flight.
const workers = 8

// Options tunes a node.
type Options struct {
	Namespace string
	// Fate decides about each new Pod; nil makes all of them ready.
	Fate func(*corev1.Pod) Fate
	// WarmUp is how long a Pod takes to become ready.
	WarmUp time.Duration
	// Start, if it is not nil, makes the sandbox of each Pod that becomes ready,
	// and returns the address at which its runner listens, at the node's port.
	Start func(ctx context.Context, pod *corev1.Pod) (ip string, err error)
	// Ended, if it is not nil, waits until the sandbox of a Pod has ended by itself,
	// and returns what it has left as its termination message.
	Ended func(ctx context.Context, pod *corev1.Pod) (message string, err error)
	// Deleted is called for each Pod that is gone, if it is not nil.
	Deleted func(*corev1.Pod)
}

// Node plays all nodes of a namespace.
type Node struct {
	opts     Options
	kube     kubernetes.Interface
	listener net.Listener
	work     chan *corev1.Pod
	done     sync.WaitGroup
	cancel   context.CancelFunc

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod
	byHash  map[string]identity
	uses    map[types.UID]int
	claimed map[types.UID]string
	faults  []string
	conns   map[net.Conn]bool
}

// identity is a Pod's: a name may come again, a UID never does.
type identity struct {
	name string
	uid  types.UID
}

// Start starts a node. Stop ends it.
func Start(ctx context.Context, config *rest.Config, opts Options) (*Node, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/vnd.kubernetes.protobuf,application/json"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &Node{
		opts: opts, kube: kube, listener: listener, work: make(chan *corev1.Pod, 10000),
		pods: map[types.UID]*corev1.Pod{}, byHash: map[string]identity{}, uses: map[types.UID]int{},
		claimed: map[types.UID]string{}, conns: map[net.Conn]bool{},
	}
	ctx, n.cancel = context.WithCancel(ctx)
	n.done.Go(func() { n.watch(ctx) })
	n.done.Go(n.serve)
	for range workers {
		n.done.Go(func() { n.start(ctx) })
	}
	return n, nil
}

// Stop ends the node and waits for it.
func (n *Node) Stop() {
	n.cancel()
	_ = n.listener.Close()
	n.mu.Lock()
	for c := range n.conns {
		_ = c.Close()
	}
	n.mu.Unlock()
	n.done.Wait()
}

// Port is where the runners of all sandboxes listen, for the templates.
func (n *Node) Port() int32 { return int32(n.listener.Addr().(*net.TCPAddr).Port) }

// watch follows the Pods, from the beginning again whenever a watch is lost.
func (n *Node) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.watchOnce(ctx); err != nil && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func (n *Node) watchOnce(ctx context.Context) error {
	pods := n.kube.CoreV1().Pods(n.opts.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelPool})
	if err != nil {
		return err
	}
	present := map[types.UID]bool{}
	for i := range list.Items {
		present[list.Items[i].UID] = true
		n.see(ctx, watch.Modified, &list.Items[i])
	}
	n.forgetAbsent(present)
	w, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelPool, ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return errors.New("the watch failed")
		}
		n.see(ctx, event.Type, pod)
	}
	return nil
}

func (n *Node) forgetAbsent(present map[types.UID]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid := range n.pods {
		if !present[uid] {
			delete(n.pods, uid)
		}
	}
}

// see takes in one state of a Pod and checks it against the one before.
func (n *Node) see(ctx context.Context, event watch.EventType, pod *corev1.Pod) {
	n.mu.Lock()
	_, known := n.pods[pod.UID]
	n.check(pod)
	if event == watch.Deleted {
		delete(n.pods, pod.UID)
	} else {
		n.pods[pod.UID] = pod
		n.byHash[tokenHash(pod)] = identity{pod.Name, pod.UID}
	}
	n.mu.Unlock()
	if event == watch.Deleted && n.opts.Deleted != nil {
		n.opts.Deleted(pod)
	}
	// A Pod that is to end is given to a worker, as is a new one.
	if event == watch.Deleted || pod.DeletionTimestamp == nil && (known || pod.Status.PodIP != "") {
		return
	}
	if pod.DeletionTimestamp != nil {
		n.done.Go(func() { n.carryOut(ctx, pod) })
		return
	}
	select {
	case n.work <- pod:
	case <-ctx.Done():
	}
}

// tokenHash is the hash of a sandbox's token.
func tokenHash(pod *corev1.Pod) string {
	for _, e := range pod.Spec.Containers[0].Env {
		switch e.Name {
		case v1alpha1.EnvTokenHash:
			return e.Value
		case v1alpha1.EnvToken:
			return token.Hash(e.Value)
		}
	}
	return ""
}

func (n *Node) start(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case pod := <-n.work:
			n.carryOut(ctx, pod)
		}
	}
}

func (n *Node) carryOut(ctx context.Context, pod *corev1.Pod) {
	err := n.startPod(ctx, pod)
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		n.fault("starting or ending Pod %s: %v", pod.Name, err)
	}
}

func (n *Node) startPod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		// The API server removes a Pod without a node by itself, unless it is
		// interrupted in between.
		if !n.lingers(ctx, pod.UID) {
			return nil
		}
		return n.kube.CoreV1().Pods(n.opts.Namespace).Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	}
	fate := Ready
	if n.opts.Fate != nil {
		fate = n.opts.Fate(pod)
	}
	if fate == Stuck {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(n.opts.WarmUp):
	}
	ip := "127.0.0.1"
	if fate == Ready && n.opts.Start != nil {
		var err error
		if ip, err = n.opts.Start(ctx, pod); err != nil {
			return err
		}
	}
	if err := n.SetStatus(ctx, pod.Name, statusOf(fate, ip)); err != nil || fate != Ready || n.opts.Ended == nil {
		return err
	}
	n.done.Go(func() { n.reportEnd(ctx, pod) })
	return nil
}

// reportEnd says in a Pod's status that its sandbox has ended, as a kubelet does.
func (n *Node) reportEnd(ctx context.Context, pod *corev1.Pod) {
	message, err := n.opts.Ended(ctx, pod)
	if err == nil {
		phase, code := corev1.PodSucceeded, int32(0)
		if message == "" {
			phase, code = corev1.PodFailed, 137
		}
		err = n.SetStatus(ctx, pod.Name, corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}},
		}}})
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		n.fault("reporting the end of Pod %s: %v", pod.Name, err)
	}
}

// lingers reports whether a Pod that is to end is still there after a while.
func (n *Node) lingers(ctx context.Context, uid types.UID) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Second):
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[uid] != nil
}

// SetStatus changes a Pod's status, as its kubelet would.
func (n *Node) SetStatus(ctx context.Context, name string, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = n.kube.CoreV1().Pods(n.opts.Namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func statusOf(fate Fate, ip string) corev1.PodStatus {
	now := metav1.Now()
	waiting := func(reason, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "sandbox", State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}}
	}
	switch fate {
	case Unpullable:
		return corev1.PodStatus{Phase: corev1.PodPending, StartTime: &now,
			ContainerStatuses: waiting("ImagePullBackOff", "the image is not there")}
	case Unschedulable:
		return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no node is free",
		}}}
	case Crashes:
		return corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Error", StartTime: &now}
	}
	return corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
	}
}

func (n *Node) fault(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, fmt.Sprintf(format, args...))
}
