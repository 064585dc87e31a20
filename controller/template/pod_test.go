package template_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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
	b, err := template.Build(tmpl)
	if err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "code", UID: "u1"}}
	return b, b.Pod(pool, "code-abcde", "secret")
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
	if want := []corev1.EnvVar{{Name: "PREHEAT_RUNNER_LISTEN", Value: ":7070"}, {Name: "PREHEAT_RUNNER_PROBE", Value: ":7071"}, {Name: "PREHEAT_RUNNER_TOKEN", Value: "secret"}}; !slices.Equal(c.Env, want) {
		t.Errorf("environment %v, want %v", c.Env, want)
	}
}

// Each weakness is refused, unless the template names its loosening, which is
// then reported.
func TestLoosening(t *testing.T) {
	container := func(change func(*corev1.SecurityContext)) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext = &corev1.SecurityContext{}
			change(p.Containers[0].SecurityContext)
		}
	}
	tests := map[string]struct {
		change func(*corev1.PodSpec)
		needs  v1alpha1.Loosening
	}{
		"host network":    {func(p *corev1.PodSpec) { p.HostNetwork = true }, v1alpha1.LoosenHostNamespaces},
		"host PIDs":       {func(p *corev1.PodSpec) { p.HostPID = true }, v1alpha1.LoosenHostNamespaces},
		"host IPC":        {func(p *corev1.PodSpec) { p.HostIPC = true }, v1alpha1.LoosenHostNamespaces},
		"host users":      {func(p *corev1.PodSpec) { p.HostUsers = ptr.To(true) }, v1alpha1.LoosenHostUsers},
		"API token":       {func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = ptr.To(true) }, v1alpha1.LoosenServiceAccountToken},
		"service links":   {func(p *corev1.PodSpec) { p.EnableServiceLinks = ptr.To(true) }, v1alpha1.LoosenNetwork},
		"host path":       {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), v1alpha1.LoosenVolumes},
		"secret":          {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), v1alpha1.LoosenVolumes},
		"projected token": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}), v1alpha1.LoosenServiceAccountToken},
		"host port":       {func(p *corev1.PodSpec) { p.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }, v1alpha1.LoosenHostNamespaces},
		"privileged":      {container(func(s *corev1.SecurityContext) { s.Privileged = ptr.To(true) }), v1alpha1.LoosenPrivilegeEscalation},
		"escalation":      {container(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = ptr.To(true) }), v1alpha1.LoosenPrivilegeEscalation},
		"unmasked /proc":  {container(func(s *corev1.SecurityContext) { s.ProcMount = ptr.To(corev1.UnmaskedProcMount) }), v1alpha1.LoosenPrivilegeEscalation},
		"root user":       {container(func(s *corev1.SecurityContext) { s.RunAsUser = ptr.To[int64](0) }), v1alpha1.LoosenRunAsRoot},
		"may be root":     {container(func(s *corev1.SecurityContext) { s.RunAsNonRoot = ptr.To(false) }), v1alpha1.LoosenRunAsRoot},
		"capability": {container(func(s *corev1.SecurityContext) {
			s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_RAW"}}
		}), v1alpha1.LoosenCapabilities},
		"unconfined": {container(func(s *corev1.SecurityContext) {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		}), v1alpha1.LoosenSeccomp},
		"writable root": {container(func(s *corev1.SecurityContext) { s.ReadOnlyRootFilesystem = ptr.To(false) }), v1alpha1.LoosenWritableRootFilesystem},
		"an init container": {func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Name: "i", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}
		}, v1alpha1.LoosenPrivilegeEscalation},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl := plain()
			test.change(&tmpl.Spec.PodTemplate.Spec)
			_, err := template.Build(tmpl)
			var refused *template.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the loosening "+string(test.needs)) {
				t.Fatalf("err = %v, want a refusal that names %s", err, test.needs)
			}
			tmpl.Spec.Loosen = []v1alpha1.Loosening{test.needs}
			if b, _ := build(t, tmpl); !slices.Equal(b.Loosened, tmpl.Spec.Loosen) {
				t.Errorf("loosened %v, want %v", b.Loosened, tmpl.Spec.Loosen)
			}
		})
	}
}

func volume(src corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: src}} }
}

// What no loosening allows.
func TestRefusals(t *testing.T) {
	all := []v1alpha1.Loosening{"RunAsRoot", "Capabilities", "PrivilegeEscalation", "Seccomp", "WritableRootFilesystem",
		"HostUsers", "ServiceAccountToken", "HostNamespaces", "Volumes", "Unlimited", "Network"}
	for name, change := range map[string]func(*corev1.PodSpec){
		"a restart is a second use": func(p *corev1.PodSpec) { p.RestartPolicy = corev1.RestartPolicyAlways },
		"a deadline from its start": func(p *corev1.PodSpec) { p.ActiveDeadlineSeconds = ptr.To[int64](5) },
		"no container":              func(p *corev1.PodSpec) { p.Containers = nil },
	} {
		tmpl := plain()
		tmpl.Spec.Loosen = all
		change(&tmpl.Spec.PodTemplate.Spec)
		if _, err := template.Build(tmpl); err == nil {
			t.Errorf("%s: accepted", name)
		}
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
