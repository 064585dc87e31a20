package race_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// history is what the API server says happened, in the order of its resource
// versions, which are those of one store and so can be compared.
type history struct {
	sp   *stage.Space
	warm func(*corev1.Pod)
	stop func()

	mu     sync.Mutex
	pods   map[types.UID]*podHistory
	claims map[types.UID]*claimHistory
	// named are the claims of a name, in the order in which they came.
	named map[string][]*claimHistory
	lost  []string
}

type podHistory struct {
	name string
	warm bool
	// claim and uid are the first holder, state is the last one. The UID is
	// that of an event's claim, whose name comes again.
	claim, state string
	uid          types.UID
	deleted      uint64
	doubles      []string
}

type claimHistory struct {
	// ended is when the claim was deleted or finished by itself.
	ended uint64
}

// follow begins to record a namespace, and tells warm of the sandboxes that
// become warm.
func follow(sp *stage.Space, warm func(*corev1.Pod)) *history {
	h := &history{sp: sp, warm: warm, pods: map[types.UID]*podHistory{}, claims: map[types.UID]*claimHistory{}, named: map[string][]*claimHistory{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(sp.TB.Context()))
	var wg sync.WaitGroup
	record := func(open opener, see func(watch.EventType, runtime.Object)) {
		// A watch from version 0 on begins with what is there: nothing yet.
		w, err := open(metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			sp.TB.Fatalf("follow the history: %v", err)
		}
		wg.Go(func() {
			if err := read(ctx, w, open, see); err != nil {
				h.note(fmt.Sprintf("the history has a gap: %v", err))
			}
		})
	}
	record(func(o metav1.ListOptions) (watch.Interface, error) {
		return sp.Kube.CoreV1().Pods(sp.Namespace).Watch(ctx, o)
	}, h.seePod)
	record(func(o metav1.ListOptions) (watch.Interface, error) {
		return sp.Preheat.SandboxV1alpha1().SandboxClaims(sp.Namespace).Watch(ctx, o)
	}, h.seeClaim)
	h.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	sp.TB.Cleanup(h.stop)
	return h
}

type opener func(metav1.ListOptions) (watch.Interface, error)

// read hands on every event until ctx ends. A watch that ends, as those of slow
// readers do, goes on after the last event.
func read(ctx context.Context, w watch.Interface, open opener, see func(watch.EventType, runtime.Object)) error {
	last := "0"
	for {
		for e := range w.ResultChan() {
			if ctx.Err() != nil {
				return nil
			}
			if e.Type == watch.Error {
				return apierrors.FromObject(e.Object)
			}
			if o, ok := e.Object.(metav1.Object); ok {
				last = o.GetResourceVersion()
			}
			see(e.Type, e.Object)
		}
		if ctx.Err() != nil {
			return nil
		}
		var err error
		if w, err = open(metav1.ListOptions{ResourceVersion: last}); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

func (h *history) note(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = append(h.lost, s)
}

func version(o metav1.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic("a resource version is not a number: " + o.GetResourceVersion())
	}
	return v
}

func (h *history) seePod(event watch.EventType, obj runtime.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pods[pod.UID]
	if p == nil {
		p = &podHistory{name: pod.Name}
		h.pods[pod.UID] = p
	}
	claim, state, uid := pod.Labels[v1alpha1.LabelClaim], pod.Labels[v1alpha1.LabelState], types.UID(pod.Labels[v1alpha1.LabelClaimUID])
	switch {
	case p.claim == "":
		p.claim, p.uid = claim, uid
	case p.claim != claim || p.uid != uid:
		p.doubles = append(p.doubles, fmt.Sprintf("sandbox %s went from claim %s (%s) to %q (%s)", p.name, p.claim, p.uid, claim, uid))
	case state == v1alpha1.StateWarm:
		p.doubles = append(p.doubles, fmt.Sprintf("sandbox %s was claimed and is warm again", p.name))
	}
	p.state = state
	if !p.warm && state == v1alpha1.StateWarm && pod.Status.PodIP != "" {
		p.warm = true
		h.warm(pod)
	}
	if event == watch.Deleted {
		p.deleted = version(pod)
	}
}

func (h *history) seeClaim(event watch.EventType, obj runtime.Object) {
	claim, ok := obj.(*v1alpha1.SandboxClaim)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.claims[claim.UID]
	if c == nil {
		c = &claimHistory{}
		h.claims[claim.UID] = c
		h.named[claim.Name] = append(h.named[claim.Name], c)
	}
	if c.ended == 0 && (event == watch.Deleted || claim.Status.FinishedAt != nil) {
		c.ended = version(claim)
	}
}

// verdict is what the history proves.
type verdict struct {
	claimed            int
	doubles, destroyed []string
	// again counts the claims that got the name of an earlier one.
	again int
}

// holder is the claim of a sandbox, nil if it never came to be.
func (h *history) holder(p *podHistory) *claimHistory {
	if p.uid != "" {
		return h.claims[p.uid]
	}
	if named := h.named[p.claim]; len(named) > 0 {
		return named[len(named)-1]
	}
	return nil
}

func (h *history) verdict() verdict {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	v := verdict{doubles: h.lost}
	for _, named := range h.named {
		v.again += len(named) - 1
	}
	for _, p := range h.pods {
		v.doubles = append(v.doubles, p.doubles...)
		if p.claim == "" {
			continue
		}
		v.claimed++
		// A surrendered sandbox is nobody's, and a claim that never came to
		// be cannot hold one.
		c := h.holder(p)
		if p.deleted == 0 || p.state != v1alpha1.StateClaimed || c == nil {
			continue
		}
		if c.ended == 0 || c.ended > p.deleted {
			v.destroyed = append(v.destroyed, fmt.Sprintf("sandbox %s was deleted at %d, its claim %s ended at %d", p.name, p.deleted, p.claim, c.ended))
		}
	}
	return v
}

// leftovers waits for the dust to settle and lists what should not be there.
func (r *race) leftovers() []string {
	r.Controller()
	for i := range poolCount {
		r.resize(i, poolSize)
	}
	var left []string
	deadline := time.Now().Add(time.Minute)
	for {
		left = r.unexpected()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (r *race) unexpected() (left []string) {
	warm := 0
	for _, pod := range r.Pods("") {
		if pod.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm {
			warm++
			continue
		}
		left = append(left, fmt.Sprintf("sandbox %s is %s by %s, ending %v", pod.Name, pod.Labels[v1alpha1.LabelState], pod.Labels[v1alpha1.LabelClaim], pod.DeletionTimestamp != nil))
	}
	claims, err := r.Preheat.SandboxV1alpha1().SandboxClaims(r.Namespace).List(r.TB.Context(), metav1.ListOptions{})
	if err != nil {
		return append(left, err.Error())
	}
	for _, c := range claims.Items {
		left = append(left, "claim "+c.Name)
	}
	if warm != poolCount*poolSize || r.Warm() != warm {
		left = append(left, fmt.Sprintf("%d sandboxes are unclaimed instead of %d", warm, poolCount*poolSize))
	}
	return left
}
