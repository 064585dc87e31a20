package template_test

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/template"
)

func plain() *v1alpha1.SandboxTemplate {
	return &v1alpha1.SandboxTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "python"},
		Spec: v1alpha1.SandboxTemplateSpec{
			PodTemplate: v1alpha1.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sandbox", Image: "sandbox:1"}}}},
			Languages:   []v1alpha1.Language{{Name: "python"}}, RunnerPort: 7070,
			NetworkPolicyManagement: v1alpha1.NetworkPolicyManaged,
		},
	}
}

func build(t *testing.T, tmpl *v1alpha1.SandboxTemplate) (*template.Blueprint, *corev1.Pod) {
	t.Helper()
	b, err := template.Build(tmpl, template.DefaultCeiling())
	if err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "code", UID: "u1"}}
	return b, b.Pod(pool, "code-abcde", template.Admission{Key: "key-1", Hash: "hash"})
}

func TestDefaultsHarden(t *testing.T) {
	b, pod := build(t, plain())
	if len(b.Loosened) != 0 {
		t.Errorf("loosened %v", b.Loosened)
	}
	s, c := pod.Spec, pod.Spec.Containers[0]
	checks := map[string]bool{
		"used once":                s.RestartPolicy == corev1.RestartPolicyNever,
		"non-root":                 *s.SecurityContext.RunAsNonRoot,
		"seccomp":                  s.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"user namespace":           s.HostUsers != nil && !*s.HostUsers,
		"no token":                 !*s.AutomountServiceAccountToken,
		"no service links":         !*s.EnableServiceLinks,
		"no capabilities":          reflect.DeepEqual(c.SecurityContext.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}),
		"no escalation":            !*c.SecurityContext.AllowPrivilegeEscalation,
		"read-only root":           *c.SecurityContext.ReadOnlyRootFilesystem,
		"CPU limit":                c.Resources.Limits.Cpu().String() == "1",
		"memory limit":             c.Resources.Limits.Memory().String() == "512Mi",
		"ephemeral storage limit":  c.Resources.Limits.StorageEphemeral().String() == "64Mi",
		"DNS is refused at once":   s.DNSPolicy == corev1.DNSNone && s.DNSConfig.Nameservers[0] == "127.0.0.1",
		"warm when the runner is":  c.StartupProbe.HTTPGet.Port.IntValue() == 7071 && c.ReadinessProbe == nil,
		"the lock is open":         pod.Labels[v1alpha1.LabelState] == v1alpha1.StateWarm,
		"the revision is labelled": pod.Labels[v1alpha1.LabelRevision] == b.Revision,
		"owned by the pool":        metav1.IsControlledBy(pod, &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}),
	}
	for what, ok := range checks {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
	for _, v := range s.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory || v.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %s is not a size-limited tmpfs", v.Name)
		}
	}
	if want := []corev1.EnvVar{{Name: "PREHEAT_RUNNER_LISTEN", Value: ":7070"}, {Name: "PREHEAT_RUNNER_PROBE", Value: ":7071"}, {Name: "PREHEAT_RUNNER_TOKEN_SHA256", Value: "hash"}}; !slices.Equal(c.Env, want) {
		t.Errorf("environment %v, want %v", c.Env, want)
	}
}

func TestRevision(t *testing.T) {
	revision := func(change func(*v1alpha1.SandboxTemplate)) string {
		tmpl := plain()
		change(tmpl)
		b, _ := build(t, tmpl)
		return b.Revision
	}
	base := revision(func(*v1alpha1.SandboxTemplate) {})
	if again := revision(func(*v1alpha1.SandboxTemplate) {}); again != base {
		t.Errorf("the same template has revisions %s and %s", base, again)
	}
	for name, change := range map[string]func(*v1alpha1.SandboxTemplate){
		"image": func(x *v1alpha1.SandboxTemplate) { x.Spec.PodTemplate.Spec.Containers[0].Image = "sandbox:2" },
		"port":  func(x *v1alpha1.SandboxTemplate) { x.Spec.RunnerPort = 7071 },
		"label": func(x *v1alpha1.SandboxTemplate) { x.Spec.PodTemplate.Metadata.Labels = map[string]string{"a": "b"} },
	} {
		if revision(change) == base {
			t.Errorf("a changed %s does not change the revision", name)
		}
	}
}
