package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	listers "github.com/preheat-dev/preheat/api/client/listers/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/plan"
)

// cache follows the pools, templates and Pods of a namespace. On top of the
// informers' stores it keeps what a claim needs at once: the candidates of
// each pool, and who waits for which claim to be bound.
type cache struct {
	pools     listers.SandboxWarmPoolNamespaceLister
	templates listers.SandboxTemplateNamespaceLister
	followers []*follower
	informers []toolscache.SharedIndexInformer
	synced    []toolscache.InformerSynced
	// cancel ends the informers, running waits for them.
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu sync.Mutex
	// pods are all sandboxes, by name, with when each was first seen.
	pods map[string]*entry
	// warm are those of them that can be claimed and are not taken.
	warm warmSet
	// sessions are the Pods of sessions, by the ids of these.
	sessions map[string]*corev1.Pod
	// queues are who waits for a sandbox, by pool.
	queues map[string]queue
	// held are the sandboxes in use here, told when their Pod is gone.
	held   map[string]*sandbox
	change chan struct{}
	// lastLost is when another replica was last faster.
	lastLost time.Time
}

// candidate is a sandbox as it was at one moment.
type candidate struct {
	pod  *corev1.Pod
	seen time.Time
}

type entry struct {
	candidate
	// planned is what decides about its turn.
	planned plan.Sandbox
	// taken says that this process tries to claim it, or has tried.
	taken bool
}

func newEntry(pod *corev1.Pod, seen time.Time) *entry {
	return &entry{candidate: candidate{pod: pod, seen: seen}, planned: plan.Sandbox{Name: pod.Name, Created: pod.CreationTimestamp.Time}}
}

func newCache(kube kubernetes.Interface, client versioned.Interface, namespace string) (*cache, error) {
	c := &cache{
		pods: map[string]*entry{}, sessions: map[string]*corev1.Pod{}, warm: warmSet{}, queues: map[string]queue{},
		held: map[string]*sandbox{}, change: make(chan struct{}), cancel: func() {},
	}
	api := client.SandboxV1alpha1()
	of := func(kind string) *follower {
		f := &follower{kind: kind}
		c.followers = append(c.followers, f)
		return f
	}
	pods := follow(of("Pods"), kube.CoreV1().Pods(namespace), kube, &corev1.Pod{}, v1alpha1.LabelPool)
	if err := pods.SetTransform(slim); err != nil {
		return nil, fmt.Errorf("follow the pools: %w", err)
	}
	pools := follow(of("SandboxWarmPools"), api.SandboxWarmPools(namespace), client, &v1alpha1.SandboxWarmPool{}, "")
	templates := follow(of("SandboxTemplates"), api.SandboxTemplates(namespace), client, &v1alpha1.SandboxTemplate{}, "")
	c.pools = listers.NewSandboxWarmPoolLister(pools.GetIndexer()).SandboxWarmPools(namespace)
	c.templates = listers.NewSandboxTemplateLister(templates.GetIndexer()).SandboxTemplates(namespace)
	notify := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.announce() },
		UpdateFunc: func(any, any) { c.announce() },
		DeleteFunc: func(any) { c.announce() },
	}
	handlers := map[toolscache.SharedIndexInformer]toolscache.ResourceEventHandler{
		templates: notify,
		pools: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { c.announce() },
			UpdateFunc: func(any, any) { c.resized() },
			DeleteFunc: func(any) { c.announce() },
		},
		pods: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { c.set(obj) },
			UpdateFunc: func(_, obj any) { c.set(obj) },
			DeleteFunc: func(obj any) { c.remove(obj) },
		},
	}
	for informer, handler := range handlers {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return nil, fmt.Errorf("follow the pools: %w", err)
		}
		c.informers = append(c.informers, informer)
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// stale is why what is known may be out of date, if it may.
func (c *cache) stale() error {
	for _, f := range c.followers {
		if err := f.stale(); err != nil {
			return err
		}
	}
	return nil
}

// slim drops what claims never look at.
func slim(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec.Volumes = nil
	}
	return obj, nil
}

// start begins to follow, and waits until all there is has been seen.
func (c *cache) start(ctx context.Context) error {
	var running context.Context
	running, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, informer := range c.informers {
		c.running.Go(func() { informer.RunWithContext(running) })
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return errors.Join(errors.New("not in time"), context.Cause(ctx))
	}
	return nil
}

func (c *cache) stop() {
	c.cancel()
	c.running.Wait()
}

func (c *cache) changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.change
}

func (c *cache) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announceLocked()
}

func (c *cache) announceLocked() {
	close(c.change)
	c.change = make(chan struct{})
}

func (c *cache) set(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.pods[pod.Name]
	changed := e == nil || e.pod.UID != pod.UID
	if changed {
		c.drop(e)
		e = newEntry(pod, time.Now())
		c.pods[pod.Name] = e
	}
	changed = changed || stateOf(e.pod) != stateOf(pod)
	c.warm.remove(e) // by the labels that it was added with
	e.pod = pod
	c.index(pod)
	c.offer(e)
	if s := c.held[pod.Name]; s != nil && dead(pod) {
		s.end(pod)
	}
	poolName := pod.Labels[v1alpha1.LabelPool]
	switch {
	case pod.Labels[v1alpha1.LabelState] == v1alpha1.StateClaimed:
		if reachable(pod) || ended(pod) {
			c.deliver(poolName, pod)
		}
	case !e.taken && usable(pod):
		for _, w := range c.queues[poolName] {
			select {
			case w.available <- struct{}{}:
			default:
			}
		}
	}
	if changed {
		c.announceLocked()
	}
}

// offer makes a sandbox a candidate if it can be claimed. mu is held.
func (c *cache) offer(e *entry) {
	if !e.taken && usable(e.pod) {
		c.warm.add(e)
	}
}

// drop takes a sandbox that is gone, which may be nil, out of the candidates. mu
// is held.
func (c *cache) drop(e *entry) {
	if e != nil {
		c.warm.remove(e)
	}
}

func (c *cache) remove(obj any) {
	if tomb, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tomb.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.pods[pod.Name]
	c.drop(known)
	delete(c.pods, pod.Name)
	c.unindex(pod)
	c.deliver(pod.Labels[v1alpha1.LabelPool], pod)
	if s := c.held[pod.Name]; s != nil {
		s.end(pod)
	}
	if known != nil {
		c.announceLocked()
	}
}

// deliver hands a bound Pod to the claim that waits for it, also one that has
// ended: its claimant then waits for another. mu is held.
func (c *cache) deliver(poolName string, pod *corev1.Pod) {
	for _, w := range c.queues[poolName] {
		if w.claim == pod.Labels[v1alpha1.LabelClaim] {
			select {
			case <-w.bound: // the latest state of it counts
			default:
			}
			w.bound <- pod
		}
	}
}

// usable reports whether a Pod can be claimed.
func usable(pod *corev1.Pod) bool {
	return pod.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm && reachable(pod)
}

// ended reports whether a Pod will never be reachable again.
func ended(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil || dead(pod) }

// dead reports whether nothing runs in a Pod any more.
func dead(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// reachable reports whether a Pod's runner can be reached.
func reachable(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
		return false
	}
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
