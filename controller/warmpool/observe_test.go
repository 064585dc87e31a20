package warmpool

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/internal/plan"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func pod(state string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{
		v1alpha1.LabelState: state, v1alpha1.LabelRevision: "r",
	}}}
	if change != nil {
		change(p)
	}
	return p
}

func ready(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	}
}

func stuck(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
}

func TestSandboxPhases(t *testing.T) {
	tests := map[string]struct {
		pod    *corev1.Pod
		memory func(*memory)
		over   bool
		want   plan.Sandbox
		reason string
	}{
		"new":       {pod: pod("warm", nil), want: plan.Sandbox{Phase: plan.Warming}},
		"not ready": {pod: pod("warm", ready("False")), want: plan.Sandbox{Phase: plan.Warming}},
		"ready":     {pod: pod("warm", ready("True")), want: plan.Sandbox{Phase: plan.Warm}},
		"no longer ready": {pod: pod("warm", ready("False")), memory: func(m *memory) { m.warm["p"] = true },
			want: plan.Sandbox{Phase: plan.Failed}, reason: v1alpha1.ReasonSandboxFailed},
		"ended": {pod: pod("warm", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			want: plan.Sandbox{Phase: plan.Failed}, reason: v1alpha1.ReasonSandboxFailed},
		"no image":     {pod: pod("warm", stuck("ErrImagePull")), want: plan.Sandbox{Phase: plan.Warming}, reason: v1alpha1.ReasonImagePullFailed},
		"wrong config": {pod: pod("warm", stuck("CreateContainerConfigError")), want: plan.Sandbox{Phase: plan.Warming}, reason: v1alpha1.ReasonSandboxFailed},
		"starting":     {pod: pod("warm", stuck("ContainerCreating")), want: plan.Sandbox{Phase: plan.Warming}},
		"no node": {pod: pod("warm", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "False", Reason: "Unschedulable"}}
		}), want: plan.Sandbox{Phase: plan.Warming}, reason: v1alpha1.ReasonUnschedulable},
		"claimed":                      {pod: pod("claimed", ready("True")), want: plan.Sandbox{Phase: plan.Claimed}},
		"claimed, and the claim ended": {pod: pod("claimed", ready("True")), over: true, want: plan.Sandbox{Phase: plan.Claimed, Over: true}},
		"retired":                      {pod: pod("retired", ready("True")), want: plan.Sandbox{Phase: plan.Retired}},
		"a state of someone else's":    {pod: pod("other", ready("True")), want: plan.Sandbox{Phase: plan.Retired}},
		"retired, and the cache is behind": {pod: pod("warm", ready("True")), memory: func(m *memory) { m.moved["p"] = plan.Retired },
			want: plan.Sandbox{Phase: plan.Retired}},
		"bound, and the cache is behind": {pod: pod("warm", ready("True")), memory: func(m *memory) { m.moved["p"] = plan.Claimed },
			want: plan.Sandbox{Phase: plan.Claimed}},
		"deleted, and the cache is behind": {pod: pod("retired", nil), memory: func(m *memory) { m.deleted["p"] = true },
			want: plan.Sandbox{Phase: plan.Retired, Ending: true}},
		"deleted by someone": {pod: pod("warm", func(p *corev1.Pod) { ready("True")(p); p.DeletionTimestamp = &metav1.Time{Time: t0} }),
			want: plan.Sandbox{Phase: plan.Warm, Ending: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := &observation{memory: newMemory(), over: func(*corev1.Pod) bool { return test.over }}
			if test.memory != nil {
				test.memory(o.memory)
			}
			got := o.sandbox(test.pod)
			if got.Problem.Reason != test.reason {
				t.Errorf("problem %+v, want %q", got.Problem, test.reason)
			}
			got.Problem = plan.Problem{}
			test.want.Name, test.want.Revision = "p", "r"
			if got != test.want {
				t.Errorf("sandbox %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	for _, test := range []struct {
		spec v1alpha1.SandboxWarmPoolSpec
		want int
	}{
		{v1alpha1.SandboxWarmPoolSpec{Replicas: ptr.To[int32](2)}, 20},
		{v1alpha1.SandboxWarmPoolSpec{Replicas: ptr.To[int32](50)}, 100},
		{v1alpha1.SandboxWarmPoolSpec{Autoscaling: &v1alpha1.Autoscaling{Max: 30}}, 60},
		{v1alpha1.SandboxWarmPoolSpec{Replicas: ptr.To[int32](2), MaxSandboxes: ptr.To[int32](3)}, 3},
	} {
		if got := limit(&test.spec); got != test.want {
			t.Errorf("limit %d, want %d", got, test.want)
		}
	}
}

// What the controller has made counts until it is seen, is gone, or is no
// longer to be expected.
func TestExpectations(t *testing.T) {
	m := newMemory()
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	m.made["seen"], m.made["gone"], m.made["doubted"], m.made["late"] = at(60), at(60), at(15), at(60)
	if got := m.wake(); !got.Equal(at(15)) {
		t.Errorf("wakes at %v, want %v", got, at(15))
	}
	m.refresh([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}}, nil, passed{gone: []string{"gone"}}, at(15))
	if _, ok := m.made["late"]; !ok || len(m.made) != 1 {
		t.Errorf("expected are %v, want late", m.made)
	}
	m.refresh(nil, nil, passed{claims: 2}, at(60))
	if len(m.made) != 0 || m.meter.Rate(at(60)) <= 0 {
		t.Errorf("expected are %v, rate %v", m.made, m.meter.Rate(at(60)))
	}
}

// The replacement of a claimed sandbox waits for the lull from when it was first
// seen to be claimed.
func TestClaimedAt(t *testing.T) {
	m := newMemory()
	claimed := pod(v1alpha1.StateClaimed, ready("True"))
	for _, s := range []int{1, 2} {
		m.refresh([]*corev1.Pod{claimed}, nil, passed{}, t0.Add(time.Duration(s)*time.Second))
	}
	o := &observation{pool: &v1alpha1.SandboxWarmPool{}, pods: []*corev1.Pod{claimed}, memory: m, over: func(*corev1.Pod) bool { return false }}
	s := o.state()
	if at := s.Sandboxes[0].ClaimedAt; !at.Equal(t0.Add(time.Second)) || s.Lull != lull {
		t.Errorf("claimed at %v, a lull of %v", at, s.Lull)
	}
	m.refresh(nil, nil, passed{}, t0)
	if len(m.claimed) != 0 {
		t.Errorf("%v are remembered that are gone", m.claimed)
	}
}

// Claims are numbered as they were created, though a second holds many.
func TestOrder(t *testing.T) {
	claim := func(uid, version string, second int) *v1alpha1.SandboxClaim {
		return &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(uid), ResourceVersion: version, CreationTimestamp: metav1.Time{Time: t0.Add(time.Duration(second) * time.Second)},
		}}
	}
	l, m := newLedger(), newMemory()
	look := func(claims ...*v1alpha1.SandboxClaim) { m.number(claims, l.versions(claims)) }
	for _, c := range []*v1alpha1.SandboxClaim{claim("c", "11", 1), claim("b", "9", 1), claim("a", "100", 0)} {
		l.claimSeen(c)
	}
	// A later write gives a claim a new version and no new place, not even
	// before the first look.
	look(claim("c", "11", 1), claim("b", "150", 1), claim("a", "100", 0), claim("d", "12", 1))
	if n, numbered := m.order["d"]; numbered {
		t.Errorf("claim d has number %d before its coming was noted", n)
	}
	l.claimSeen(claim("d", "12", 1))
	look(claim("d", "12", 1), claim("c", "11", 1), claim("b", "200", 1), claim("a", "100", 0))
	for i, uid := range []types.UID{"a", "b", "c", "d"} {
		if m.order[uid] != i+1 {
			t.Errorf("claim %s has number %d, want %d", uid, m.order[uid], i+1)
		}
	}
}

// A pod is the sandbox of the claim that bound it, not of its namesake.
func TestHolds(t *testing.T) {
	c := &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u1"}}
	labelled := func(claim, uid string) *corev1.Pod {
		p := pod("claimed", nil)
		p.Labels[v1alpha1.LabelClaim], p.Labels[v1alpha1.LabelClaimUID] = claim, uid
		return p
	}
	for _, test := range []struct {
		pod  *corev1.Pod
		want bool
	}{
		{labelled("c", "u1"), true}, {labelled("c", ""), true}, {labelled("c", "u0"), false}, {labelled("d", "u1"), false}, {pod("warm", nil), false},
	} {
		if got := Holds(c, test.pod); got != test.want {
			t.Errorf("labels %v: %v, want %v", test.pod.Labels, got, test.want)
		}
	}
}
