package stage

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// patience is how long a test waits for what has to happen.
const patience = 60 * time.Second

// Space is a namespace of one test.
type Space struct {
	*Stage
	TB        testing.TB
	Namespace string
}

// Space makes a namespace for a test, with the settings of a controller.
func (s *Stage) Space(tb testing.TB) *Space {
	tb.Helper()
	name, err := s.namespace(tb.Context())
	if err != nil {
		tb.Fatalf("make a namespace: %v", err)
	}
	sp := &Space{Stage: s, TB: tb, Namespace: name}
	sp.grant()
	// Leases are short, so that a killed controller is soon succeeded.
	sp.Settings("config-leader-election", map[string]string{"lease-duration": "2s", "renew-deadline": "1500ms", "retry-period": "300ms"})
	return sp
}

// Settings creates a ConfigMap that the controller reads.
func (sp *Space) Settings(name string, data map[string]string) {
	sp.TB.Helper()
	_, err := sp.Kube.CoreV1().ConfigMaps(sp.Namespace).Create(sp.TB.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	if err != nil {
		sp.TB.Fatalf("create ConfigMap %s: %v", name, err)
	}
}

// Node starts a fake node for the namespace.
func (sp *Space) Node(opts fakenode.Options) *fakenode.Node {
	sp.TB.Helper()
	opts.Namespace = sp.Namespace
	config := sp.Config()
	config.UserAgent = "fakenode"
	n, err := fakenode.Start(context.WithoutCancel(sp.TB.Context()), config, opts)
	if err != nil {
		sp.TB.Fatalf("start a node: %v", err)
	}
	sp.TB.Cleanup(n.Stop)
	return n
}

// Template returns a template for sandboxes of a node.
func (sp *Space) Template(name string, node *fakenode.Node) *v1alpha1.SandboxTemplate {
	return &v1alpha1.SandboxTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: sp.Namespace, Name: name},
		Spec: v1alpha1.SandboxTemplateSpec{
			PodTemplate: v1alpha1.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sandbox", Image: "preheat.test/sandbox:1"}}}},
			Languages:   []v1alpha1.Language{{Name: "python", Aliases: []string{"py"}, Version: "3.13", Warm: true}, {Name: "bash"}},
			RunnerPort:  node.Port(),
		},
	}
}

// Pool returns a pool of a template.
func (sp *Space) Pool(name, template string, replicas int32) *v1alpha1.SandboxWarmPool {
	return &v1alpha1.SandboxWarmPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: sp.Namespace, Name: name},
		Spec: v1alpha1.SandboxWarmPoolSpec{
			SandboxTemplateRef: v1alpha1.Reference{Name: template}, Replicas: ptr.To(replicas),
		},
	}
}

// Create creates templates, pools and claims.
func (sp *Space) Create(objects ...any) {
	sp.TB.Helper()
	ctx := sp.TB.Context()
	api := sp.Preheat.SandboxV1alpha1()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *v1alpha1.SandboxTemplate:
			_, err = api.SandboxTemplates(sp.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *v1alpha1.SandboxWarmPool:
			_, err = api.SandboxWarmPools(sp.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *v1alpha1.SandboxClaim:
			_, err = api.SandboxClaims(sp.Namespace).Create(ctx, o, metav1.CreateOptions{})
		default:
			sp.TB.Fatalf("cannot create a %T", o)
		}
		if err != nil {
			sp.TB.Fatalf("create %T: %v", o, err)
		}
	}
}

// Claimant starts a pool of execute's.
func (sp *Space) Claimant(change ...func(*rest.Config)) *kube.Pool {
	sp.TB.Helper()
	return sp.ClaimantWith(prometheus.NewRegistry(), change...)
}

// ClaimantWith is Claimant with a registry for its metrics.
func (sp *Space) ClaimantWith(registry prometheus.Registerer, change ...func(*rest.Config)) *kube.Pool {
	sp.TB.Helper()
	return sp.claimant(registry, kube.Config{}, change...)
}

// ClaimantThatRemembers is Claimant that keeps the answers of events for d.
func (sp *Space) ClaimantThatRemembers(d time.Duration) *kube.Pool {
	sp.TB.Helper()
	return sp.claimant(prometheus.NewRegistry(), kube.Config{Remember: d})
}

// ClaimantOf is Claimant with settings of its own.
func (sp *Space) ClaimantOf(config kube.Config) *kube.Pool {
	sp.TB.Helper()
	return sp.claimant(prometheus.NewRegistry(), config)
}

func (sp *Space) claimant(registry prometheus.Registerer, config kube.Config, change ...func(*rest.Config)) *kube.Pool {
	sp.TB.Helper()
	config.Client, config.Namespace = sp.Config(), sp.Namespace
	AsExecute(config.Client)
	for _, f := range change {
		f(config.Client)
	}
	ctx, cancel := context.WithTimeout(sp.TB.Context(), patience)
	defer cancel()
	p, err := kube.New(ctx, config, kube.NewMetrics(registry), slog.New(slog.DiscardHandler))
	if err != nil {
		sp.TB.Fatalf("start a claimant: %v", err)
	}
	sp.TB.Cleanup(func() {
		if err := p.Close(); err != nil {
			sp.TB.Errorf("close a claimant: %v", err)
		}
	})
	return p
}

// Eventually waits until something holds, and fails the test otherwise.
func (sp *Space) Eventually(what string, holds func() bool) {
	sp.TB.Helper()
	err := eventually(sp.TB.Context(), patience, what, func() (bool, error) { return holds(), nil })
	if err != nil {
		for _, p := range sp.Pods("") {
			sp.TB.Logf("Pod %s %v %s ending=%v", p.Name, p.Labels, p.Status.Phase, p.DeletionTimestamp != nil)
		}
		sp.TB.Fatal(err)
	}
}

// Pods lists the sandboxes with a state, or all.
func (sp *Space) Pods(state string) []corev1.Pod {
	sp.TB.Helper()
	selector := v1alpha1.LabelPool
	if state != "" {
		selector += "," + v1alpha1.LabelState + "=" + state
	}
	list, err := sp.Kube.CoreV1().Pods(sp.Namespace).List(context.WithoutCancel(sp.TB.Context()), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		sp.TB.Fatalf("list Pods: %v", err)
	}
	return list.Items
}

// Warm counts the sandboxes that are warm and ready.
func (sp *Space) Warm() int {
	sp.TB.Helper()
	n := 0
	for _, p := range sp.Pods(v1alpha1.StateWarm) {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n
}

// Claims lists the claims.
func (sp *Space) Claims() []v1alpha1.SandboxClaim {
	sp.TB.Helper()
	list, err := sp.Preheat.SandboxV1alpha1().SandboxClaims(sp.Namespace).List(context.WithoutCancel(sp.TB.Context()), metav1.ListOptions{})
	if err != nil {
		sp.TB.Fatalf("list claims: %v", err)
	}
	return list.Items
}

// Claim returns a claim that is there.
func (sp *Space) Claim(name string) *v1alpha1.SandboxClaim {
	sp.TB.Helper()
	c, err := sp.Preheat.SandboxV1alpha1().SandboxClaims(sp.Namespace).Get(sp.TB.Context(), name, metav1.GetOptions{})
	if err != nil {
		sp.TB.Fatalf("get claim %s: %v", name, err)
	}
	return c
}

// EndClaim deletes a claim.
func (sp *Space) EndClaim(name string) {
	sp.TB.Helper()
	if err := sp.Preheat.SandboxV1alpha1().SandboxClaims(sp.Namespace).Delete(sp.TB.Context(), name, metav1.DeleteOptions{}); err != nil {
		sp.TB.Fatalf("delete claim %s: %v", name, err)
	}
}

// WarmPool returns a pool that is there.
func (sp *Space) WarmPool(name string) *v1alpha1.SandboxWarmPool {
	sp.TB.Helper()
	p, err := sp.Preheat.SandboxV1alpha1().SandboxWarmPools(sp.Namespace).Get(sp.TB.Context(), name, metav1.GetOptions{})
	if err != nil {
		sp.TB.Fatalf("get pool %s: %v", name, err)
	}
	return p
}

// Scale sets a pool's size by its scale subresource.
func (sp *Space) Scale(name string, replicas int32) {
	sp.TB.Helper()
	api := sp.Preheat.SandboxV1alpha1().SandboxWarmPools(sp.Namespace)
	// The controller writes the pool's status between the reading and the writing.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := api.GetScale(sp.TB.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = replicas
		_, err = api.UpdateScale(sp.TB.Context(), name, scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		sp.TB.Fatalf("scale pool %s: %v", name, err)
	}
}

// Relabel rolls a template out by a label on its Pods.
func (sp *Space) Relabel(template, label, value string) {
	sp.TB.Helper()
	patch := fmt.Sprintf(`{"spec":{"podTemplate":{"metadata":{"labels":{%q:%q}}}}}`, label, value)
	_, err := sp.Preheat.SandboxV1alpha1().SandboxTemplates(sp.Namespace).Patch(sp.TB.Context(), template, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		sp.TB.Fatalf("change template %s: %v", template, err)
	}
}

// Events lists the events with a reason.
func (sp *Space) Events(reason string) []corev1.Event {
	sp.TB.Helper()
	list, err := sp.Kube.CoreV1().Events(sp.Namespace).List(sp.TB.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		sp.TB.Fatalf("list events: %v", err)
	}
	return list.Items
}
