package warmpool

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/plan"
)

const (
	// minLimit is the least that maxSandboxes stands for when it is not set.
	minLimit = 20
	// lull is longer than most programs take, their claims included, even ten
	// at once on few processors. See plan.State.
	lull = 500 * time.Millisecond
	// orphanGrace is how long a claimed sandbox may be without its claim. A
	// claimant creates claim and label side by side and gives up sooner.
	orphanGrace = 6 * time.Second
)

// observation is a pool as the caches and the memory show it.
type observation struct {
	pool   *v1alpha1.SandboxWarmPool
	pods   []*corev1.Pod
	claims []*v1alpha1.SandboxClaim
	memory *memory
	// over tells whether the claim of a claimed sandbox has ended.
	over func(*corev1.Pod) bool
	// revision is the template's; empty if there is no usable template, for
	// the reason in paused.
	revision string
	// key is the current key of the sandboxes' tokens; empty if none is known.
	key    string
	paused plan.Problem
	now    time.Time

	maxCreating int
}

// state turns an observation into what the plan decides on.
func (o *observation) state() plan.State {
	spec := &o.pool.Spec
	s := plan.State{
		Size: o.size(), Revision: o.revision, Creating: len(o.memory.made),
		Limit: limit(spec), MaxCreating: o.maxCreating,
		WarmTimeout: time.Duration(spec.ProgressDeadlineSeconds) * time.Second,
		Backoff:     o.memory.backoff, Paused: o.paused, Lull: lull,
	}
	if spec.MaxAge != nil {
		s.MaxAge = spec.MaxAge.Duration
	}
	s.Strategy, s.MaxUnavailable = strategy(spec.UpdateStrategy)
	if o.revision == "" {
		// Without a template there is nothing to replace a sandbox by.
		s.Strategy, s.MaxAge = plan.OnReplenish, 0
	}
	for _, pod := range o.pods {
		s.Sandboxes = append(s.Sandboxes, o.sandbox(pod))
	}
	held := o.heldByClaim()
	for _, c := range o.claims {
		if o.waits(c, held[c.Name]) {
			// The number breaks ties within the second of the timestamp.
			created := c.CreationTimestamp.Add(time.Duration(o.memory.order[c.UID]) * time.Nanosecond)
			s.Waiting = append(s.Waiting, plan.Claim{Name: c.Name, Created: created, Deadline: BindDeadline(c)})
		}
	}
	return s
}

func (o *observation) size() plan.Size {
	size := plan.Size{Replicas: int(ptr.Deref(o.pool.Spec.Replicas, 0)), Memory: o.memory.size}
	if a := o.pool.Spec.Autoscaling; a != nil {
		size.Autoscale = &plan.Autoscale{
			Min: int(a.Min), Max: int(a.Max),
			Rate: o.memory.meter.Rate(o.now), Refill: o.memory.meter.Refill(),
		}
	}
	return size
}

func limit(spec *v1alpha1.SandboxWarmPoolSpec) int {
	if spec.MaxSandboxes != nil {
		return int(*spec.MaxSandboxes)
	}
	return max(minLimit, 2*spec.Largest())
}

func strategy(u v1alpha1.UpdateStrategy) (plan.Strategy, int) {
	switch u.Type {
	case v1alpha1.UpdateOnReplenish:
		return plan.OnReplenish, 0
	case v1alpha1.UpdateRecreate:
		return plan.Recreate, 0
	}
	if u.RollingUpdate == nil {
		return plan.Rolling, 0
	}
	return plan.Rolling, int(u.RollingUpdate.MaxUnavailable)
}

// BindDeadline is when a claim stops waiting for a sandbox.
func BindDeadline(c *v1alpha1.SandboxClaim) time.Time {
	return c.CreationTimestamp.Add(time.Duration(c.Spec.BindTimeoutSeconds) * time.Second)
}

// heldByClaim returns the pool's claimed Pods by the name of the claim that holds
// them.
func (o *observation) heldByClaim() map[string][]*corev1.Pod {
	held := map[string][]*corev1.Pod{}
	for _, pod := range o.pods {
		if name := pod.Labels[v1alpha1.LabelClaim]; name != "" {
			held[name] = append(held[name], pod)
		}
	}
	return held
}

// waits reports whether c is for the controller to bind, and is not bound. held
// are the Pods that a claim of its name holds.
func (o *observation) waits(c *v1alpha1.SandboxClaim, held []*corev1.Pod) bool {
	if c.Spec.Binding == v1alpha1.BindingClaimant || c.DeletionTimestamp != nil || c.Status.FinishedAt != nil || c.Status.Sandbox != nil {
		return false
	}
	if _, bound := o.memory.bound[c.UID]; bound {
		return false
	}
	if _, numbered := o.memory.order[c.UID]; !numbered {
		return false
	}
	return !slices.ContainsFunc(held, func(p *corev1.Pod) bool { return Holds(c, p) })
}

// Holds reports whether pod is the sandbox of c.
func Holds(c *v1alpha1.SandboxClaim, pod *corev1.Pod) bool {
	uid := pod.Labels[v1alpha1.LabelClaimUID]
	return pod.Namespace == c.Namespace && pod.Labels[v1alpha1.LabelState] == v1alpha1.StateClaimed &&
		pod.Labels[v1alpha1.LabelClaim] == c.Name && (uid == "" || uid == string(c.UID))
}

func (o *observation) sandbox(pod *corev1.Pod) plan.Sandbox {
	x := plan.Sandbox{
		Name: pod.Name, Revision: o.revisionOf(pod), Created: pod.CreationTimestamp.Time,
		Ending: pod.DeletionTimestamp != nil || o.memory.deleted[pod.Name],
	}
	switch pod.Labels[v1alpha1.LabelState] {
	case v1alpha1.StateClaimed:
		x.Phase, x.ClaimedAt = plan.Claimed, o.memory.claimed[pod.Name]
		if x.Over = !x.Ending && o.over(pod); x.Over {
			if _, known := o.memory.over[pod.Name]; !known {
				o.memory.over[pod.Name] = o.now
			}
			x.OverSince = o.memory.over[pod.Name]
		}
		return x
	case v1alpha1.StateWarm:
		if moved, ok := o.memory.moved[pod.Name]; ok {
			x.Phase = moved
			return x
		}
	default:
		x.Phase = plan.Retired
		return x
	}
	x.Phase, x.Problem = unclaimed(pod)
	if x.Phase == plan.Warming && o.memory.warm[pod.Name] {
		// It was ready and is not any more: its program or its node is gone.
		x.Phase = plan.Failed
		x.Problem = plan.Problem{Reason: v1alpha1.ReasonSandboxFailed, Message: "sandbox " + pod.Name + " is no longer ready"}
	}
	return x
}

// revisionOf is the revision of a sandbox's template. A sandbox whose token is
// made from an older key has none: it is replaced as if its template had changed.
func (o *observation) revisionOf(pod *corev1.Pod) string {
	if o.key != "" && pod.Annotations[v1alpha1.AnnotationTokenKey] != o.key {
		return ""
	}
	return pod.Labels[v1alpha1.LabelRevision]
}

// unclaimed tells how far a sandbox is that nobody has claimed.
func unclaimed(pod *corev1.Pod) (plan.Phase, plan.Problem) {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		message := "sandbox " + pod.Name + " ended: " + string(pod.Status.Phase)
		if pod.Status.Reason != "" {
			message += " (" + pod.Status.Reason + ")"
		}
		return plan.Failed, plan.Problem{Reason: v1alpha1.ReasonSandboxFailed, Message: message}
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return plan.Warm, plan.Problem{}
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable:
			return plan.Warming, plan.Problem{Reason: v1alpha1.ReasonUnschedulable, Message: c.Message}
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil {
			if p := waiting(w); p != (plan.Problem{}) {
				return plan.Warming, p
			}
		}
	}
	return plan.Warming, plan.Problem{}
}

func waiting(w *corev1.ContainerStateWaiting) plan.Problem {
	message := w.Reason
	if w.Message != "" {
		message += ": " + w.Message
	}
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable":
		return plan.Problem{Reason: v1alpha1.ReasonImagePullFailed, Message: message}
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return plan.Problem{Reason: v1alpha1.ReasonSandboxFailed, Message: message}
	}
	return plan.Problem{}
}
