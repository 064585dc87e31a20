package template_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/template"
)

// pod changes the Pod of a template, sandbox its first container and secured
// that container's security context.
func pod(change func(*corev1.PodSpec)) func(*v1alpha1.PodTemplate) {
	return func(p *v1alpha1.PodTemplate) { change(&p.Spec) }
}

func sandbox(change func(*corev1.Container)) func(*v1alpha1.PodTemplate) {
	return pod(func(p *corev1.PodSpec) { change(&p.Containers[0]) })
}

func secured(change func(*corev1.SecurityContext)) func(*v1alpha1.PodTemplate) {
	return sandbox(func(c *corev1.Container) {
		c.SecurityContext = &corev1.SecurityContext{}
		change(c.SecurityContext)
	})
}

func podSecured(sc corev1.PodSecurityContext) func(*v1alpha1.PodTemplate) {
	return pod(func(p *corev1.PodSpec) { p.SecurityContext = &sc })
}

func env(v corev1.EnvVarSource) func(*v1alpha1.PodTemplate) {
	return sandbox(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &v}} })
}

func limit(name corev1.ResourceName, amount string) func(*v1alpha1.PodTemplate) {
	return sandbox(func(c *corev1.Container) {
		c.Resources.Limits = corev1.ResourceList{name: resource.MustParse(amount)}
	})
}

func volume(src corev1.VolumeSource) func(*v1alpha1.PodTemplate) {
	return pod(func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: src}} })
}

func label(key string) func(*v1alpha1.PodTemplate) {
	return func(p *v1alpha1.PodTemplate) { p.Metadata.Labels = map[string]string{key: "v"} }
}

func annotation(key string) func(*v1alpha1.PodTemplate) {
	return func(p *v1alpha1.PodTemplate) { p.Metadata.Annotations = map[string]string{key: "v"} }
}

// Each weakness is refused with its field's path, unless the template names its
// loosening, which is then reported.
func TestLoosening(t *testing.T) {
	const first = "spec.podTemplate.spec.containers[0]."
	tests := map[string]struct {
		change func(*v1alpha1.PodTemplate)
		field  string
		needs  v1alpha1.Loosening
	}{
		"host network": {pod(func(p *corev1.PodSpec) { p.HostNetwork = true }), "spec.podTemplate.spec.hostNetwork", v1alpha1.LoosenHostNamespaces},
		"host PIDs":    {pod(func(p *corev1.PodSpec) { p.HostPID = true }), "spec.podTemplate.spec.hostPID", v1alpha1.LoosenHostNamespaces},
		"host IPC":     {pod(func(p *corev1.PodSpec) { p.HostIPC = true }), "spec.podTemplate.spec.hostIPC", v1alpha1.LoosenHostNamespaces},
		"host port":    {sandbox(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{HostPort: 80}} }), first + "ports[0].hostPort", v1alpha1.LoosenHostNamespaces},
		"sysctl":       {podSecured(corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "a", Value: "1"}}}), "spec.podTemplate.spec.securityContext.sysctls", v1alpha1.LoosenHostNamespaces},
		"host users":   {pod(func(p *corev1.PodSpec) { p.HostUsers = ptr.To(true) }), "spec.podTemplate.spec.hostUsers", v1alpha1.LoosenHostUsers},

		"API token":            {pod(func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = ptr.To(true) }), "spec.podTemplate.spec.automountServiceAccountToken", v1alpha1.LoosenServiceAccountToken},
		"projected token":      {volume(projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}})), "spec.podTemplate.spec.volumes[0].projected.sources[0].serviceAccountToken", v1alpha1.LoosenServiceAccountToken},
		"service account":      {pod(func(p *corev1.PodSpec) { p.ServiceAccountName = "admin" }), "spec.podTemplate.spec.serviceAccountName", v1alpha1.LoosenServiceAccount},
		"old service account":  {pod(func(p *corev1.PodSpec) { p.DeprecatedServiceAccount = "admin" }), "spec.podTemplate.spec.serviceAccount", v1alpha1.LoosenServiceAccount},
		"secret in a variable": {env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}), first + "env[0].valueFrom.secretKeyRef", v1alpha1.LoosenSecrets},
		"secret as variables":  {sandbox(func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}} }), first + "envFrom[0].secretRef", v1alpha1.LoosenSecrets},
		"secret volume":        {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), "spec.podTemplate.spec.volumes[0].secret", v1alpha1.LoosenSecrets},
		"projected secret":     {volume(projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{}})), "spec.podTemplate.spec.volumes[0].projected.sources[0].secret", v1alpha1.LoosenSecrets},
		"host path":            {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), "spec.podTemplate.spec.volumes[0].hostPath", v1alpha1.LoosenVolumes},
		"claimed volume":       {volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), "spec.podTemplate.spec.volumes[0].persistentVolumeClaim", v1alpha1.LoosenVolumes},
		"block device":         {sandbox(func(c *corev1.Container) { c.VolumeDevices = []corev1.VolumeDevice{{Name: "d"}} }), first + "volumeDevices", v1alpha1.LoosenDevices},
		"device":               {limit("example.com/gpu", "1"), first + "resources.limits[example.com/gpu]", v1alpha1.LoosenDevices},
		"resource claim":       {pod(func(p *corev1.PodSpec) { p.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} }), "spec.podTemplate.spec.resourceClaims", v1alpha1.LoosenDevices},
		"huge pages":           {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}}), "spec.podTemplate.spec.volumes[0].emptyDir.medium", v1alpha1.LoosenDevices},
		"mount propagation": {sandbox(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)}}
		}), first + "volumeMounts[0].mountPropagation", v1alpha1.LoosenPrivilegeEscalation},
		"privileged":            {secured(func(s *corev1.SecurityContext) { s.Privileged = ptr.To(true) }), first + "securityContext.privileged", v1alpha1.LoosenPrivilegeEscalation},
		"escalation":            {secured(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = ptr.To(true) }), first + "securityContext.allowPrivilegeEscalation", v1alpha1.LoosenPrivilegeEscalation},
		"unmasked /proc":        {secured(func(s *corev1.SecurityContext) { s.ProcMount = ptr.To(corev1.UnmaskedProcMount) }), first + "securityContext.procMount", v1alpha1.LoosenPrivilegeEscalation},
		"root user":             {secured(func(s *corev1.SecurityContext) { s.RunAsUser = ptr.To[int64](0) }), first + "securityContext.runAsUser", v1alpha1.LoosenRunAsRoot},
		"root group":            {secured(func(s *corev1.SecurityContext) { s.RunAsGroup = ptr.To[int64](0) }), first + "securityContext.runAsGroup", v1alpha1.LoosenRunAsRoot},
		"may be root":           {secured(func(s *corev1.SecurityContext) { s.RunAsNonRoot = ptr.To(false) }), first + "securityContext.runAsNonRoot", v1alpha1.LoosenRunAsRoot},
		"root user of the Pod":  {podSecured(corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}), "spec.podTemplate.spec.securityContext.runAsUser", v1alpha1.LoosenRunAsRoot},
		"root group of the Pod": {podSecured(corev1.PodSecurityContext{RunAsGroup: ptr.To[int64](0)}), "spec.podTemplate.spec.securityContext.runAsGroup", v1alpha1.LoosenRunAsRoot},
		"root among the groups": {podSecured(corev1.PodSecurityContext{SupplementalGroups: []int64{7, 0}}), "spec.podTemplate.spec.securityContext.supplementalGroups", v1alpha1.LoosenRunAsRoot},
		"volumes of root":       {podSecured(corev1.PodSecurityContext{FSGroup: ptr.To[int64](0)}), "spec.podTemplate.spec.securityContext.fsGroup", v1alpha1.LoosenRunAsRoot},
		"capability": {secured(func(s *corev1.SecurityContext) {
			s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_RAW"}}
		}), first + "securityContext.capabilities.add", v1alpha1.LoosenCapabilities},
		"writable root": {secured(func(s *corev1.SecurityContext) { s.ReadOnlyRootFilesystem = ptr.To(false) }), first + "securityContext.readOnlyRootFilesystem", v1alpha1.LoosenWritableRootFilesystem},
		"no seccomp": {secured(func(s *corev1.SecurityContext) {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		}), first + "securityContext.seccompProfile", v1alpha1.LoosenSeccomp},
		"no seccomp of the Pod": {podSecured(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}), "spec.podTemplate.spec.securityContext.seccompProfile", v1alpha1.LoosenSeccomp},
		"no AppArmor": {secured(func(s *corev1.SecurityContext) {
			s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
		}), first + "securityContext.appArmorProfile", v1alpha1.LoosenAppArmor},
		"no AppArmor of the Pod":  {podSecured(corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}), "spec.podTemplate.spec.securityContext.appArmorProfile", v1alpha1.LoosenAppArmor},
		"SELinux type":            {secured(func(s *corev1.SecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} }), first + "securityContext.seLinuxOptions", v1alpha1.LoosenSELinux},
		"SELinux type of the Pod": {podSecured(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}), "spec.podTemplate.spec.securityContext.seLinuxOptions", v1alpha1.LoosenSELinux},

		"fixed node":       {pod(func(p *corev1.PodSpec) { p.NodeName = "control-plane" }), "spec.podTemplate.spec.nodeName", v1alpha1.LoosenScheduling},
		"toleration":       {pod(func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }), "spec.podTemplate.spec.tolerations", v1alpha1.LoosenScheduling},
		"scheduler":        {pod(func(p *corev1.PodSpec) { p.SchedulerName = "mine" }), "spec.podTemplate.spec.schedulerName", v1alpha1.LoosenScheduling},
		"system priority":  {pod(func(p *corev1.PodSpec) { p.PriorityClassName = "system-node-critical" }), "spec.podTemplate.spec.priorityClassName", v1alpha1.LoosenScheduling},
		"second container": {pod(func(p *corev1.PodSpec) { p.Containers = append(p.Containers, corev1.Container{Name: "side"}) }), "spec.podTemplate.spec.containers", v1alpha1.LoosenSidecars},
		"init container":   {pod(func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{{Name: "init"}} }), "spec.podTemplate.spec.initContainers", v1alpha1.LoosenSidecars},

		"service links":       {pod(func(p *corev1.PodSpec) { p.EnableServiceLinks = ptr.To(true) }), "spec.podTemplate.spec.enableServiceLinks", v1alpha1.LoosenNetwork},
		"DNS of the cluster":  {pod(func(p *corev1.PodSpec) { p.DNSPolicy = corev1.DNSClusterFirst }), "spec.podTemplate.spec.dnsPolicy", v1alpha1.LoosenNetwork},
		"DNS of its own":      {pod(func(p *corev1.PodSpec) { p.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"8.8.8.8"}} }), "spec.podTemplate.spec.dnsConfig", v1alpha1.LoosenNetwork},
		"host alias":          {pod(func(p *corev1.PodSpec) { p.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1"}} }), "spec.podTemplate.spec.hostAliases", v1alpha1.LoosenNetwork},
		"second network":      {annotation("k8s.v1.cni.cncf.io/networks"), "spec.podTemplate.metadata.annotations[k8s.v1.cni.cncf.io/networks]", v1alpha1.LoosenMetadata},
		"AppArmor of old":     {annotation("container.apparmor.security.beta.kubernetes.io/sandbox"), "spec.podTemplate.metadata.annotations[container.apparmor.security.beta.kubernetes.io/sandbox]", v1alpha1.LoosenMetadata},
		"runtime's extension": {annotation("io.kubernetes.cri-o.userns-mode"), "spec.podTemplate.metadata.annotations[io.kubernetes.cri-o.userns-mode]", v1alpha1.LoosenMetadata},
		"injected container":  {label("sidecar.istio.io/inject"), "spec.podTemplate.metadata.labels[sidecar.istio.io/inject]", v1alpha1.LoosenMetadata},

		"much memory":        {limit(corev1.ResourceMemory, "900Ti"), first + "resources.limits[memory]", v1alpha1.LoosenUnlimited},
		"many processors":    {limit(corev1.ResourceCPU, "1k"), first + "resources.limits[cpu]", v1alpha1.LoosenUnlimited},
		"much local storage": {limit(corev1.ResourceEphemeralStorage, "900Ti"), first + "resources.limits[ephemeral-storage]", v1alpha1.LoosenUnlimited},
		"much memory in all": {pod(func(p *corev1.PodSpec) {
			p.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("900Ti")}}
		}), "spec.podTemplate.spec.resources.limits[memory]", v1alpha1.LoosenUnlimited},
		"large volume": {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("900Ti"))}}), "spec.podTemplate.spec.volumes[0].emptyDir.sizeLimit", v1alpha1.LoosenUnlimited},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tmpl := plain()
			test.change(&tmpl.Spec.PodTemplate)
			_, err := template.Build(tmpl, template.DefaultCeiling())
			var refused *template.RefusedError
			if !errors.As(err, &refused) || !slices.Equal(refused.Reasons, []string{test.field + " needs the loosening " + string(test.needs)}) {
				t.Fatalf("err = %v, want one refusal, of %s without %s", err, test.field, test.needs)
			}
			// Unlimited leaves out the limits that the template does not set.
			tmpl.Spec.Loosen = []v1alpha1.Loosening{test.needs}
			if b, _ := build(t, tmpl); !slices.Equal(b.Loosened, tmpl.Spec.Loosen) {
				t.Errorf("loosened %v, want %v", b.Loosened, tmpl.Spec.Loosen)
			}
		})
	}
}

func projected(p corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{p}}}
}

// What no loosening allows.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.PodTemplate)
		field  string
	}{
		"a restart is a second use":   {pod(func(p *corev1.PodSpec) { p.RestartPolicy = corev1.RestartPolicyAlways }), "spec.podTemplate.spec.restartPolicy"},
		"so is one of the container":  {sandbox(func(c *corev1.Container) { c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways) }), "spec.podTemplate.spec.containers[0].restartPolicy"},
		"a deadline from its start":   {pod(func(p *corev1.PodSpec) { p.ActiveDeadlineSeconds = ptr.To[int64](5) }), "spec.podTemplate.spec.activeDeadlineSeconds"},
		"a long farewell":             {pod(func(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = ptr.To[int64](3600) }), "spec.podTemplate.spec.terminationGracePeriodSeconds"},
		"no container":                {pod(func(p *corev1.PodSpec) { p.Containers = nil }), "spec.podTemplate.spec.containers"},
		"an ephemeral container":      {pod(func(p *corev1.PodSpec) { p.EphemeralContainers = []corev1.EphemeralContainer{{}} }), "spec.podTemplate.spec.ephemeralContainers"},
		"processes of all containers": {pod(func(p *corev1.PodSpec) { p.ShareProcessNamespace = ptr.To(true) }), "spec.podTemplate.spec.shareProcessNamespace"},
		"a hook":                      {sandbox(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{} }), "spec.podTemplate.spec.containers[0].lifecycle"},
		"a liveness probe":            {sandbox(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} }), "spec.podTemplate.spec.containers[0].livenessProbe"},
		"a probe of another host": {sandbox(func(c *corev1.Container) {
			c.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254"}}}
		}), "spec.podTemplate.spec.containers[0].startupProbe.httpGet.host"},
		"a priority number":               {pod(func(p *corev1.PodSpec) { p.Priority = ptr.To[int32](2000000000) }), "spec.podTemplate.spec.priority"},
		"a gate":                          {pod(func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), "spec.podTemplate.spec.schedulingGates"},
		"the label that opens the runner": {label(v1alpha1.LabelClaimant), "spec.podTemplate.metadata.labels[sandbox.preheat.dev/claimant]"},
		"the lock":                        {label(v1alpha1.LabelState), "spec.podTemplate.metadata.labels[sandbox.preheat.dev/state]"},
		"an annotation of ours":           {annotation("sandbox.preheat.dev/x"), "spec.podTemplate.metadata.annotations[sandbox.preheat.dev/x]"},
	} {
		t.Run(name, func(t *testing.T) {
			tmpl := plain()
			tmpl.Spec.Loosen = loosenings
			test.change(&tmpl.Spec.PodTemplate)
			var refused *template.RefusedError
			if _, err := template.Build(tmpl, template.DefaultCeiling()); !errors.As(err, &refused) ||
				len(refused.Reasons) != 1 || !strings.HasPrefix(refused.Reasons[0], test.field+": ") {
				t.Errorf("err = %v, want one refusal, of %s", err, test.field)
			}
		})
	}
}

var loosenings = []v1alpha1.Loosening{
	"RunAsRoot", "Capabilities", "PrivilegeEscalation", "Seccomp", "WritableRootFilesystem", "HostUsers", "ServiceAccountToken",
	"HostNamespaces", "Volumes", "Unlimited", "Network", "Secrets", "ServiceAccount", "Scheduling", "Sidecars", "AppArmor",
	"SELinux", "Devices", "Metadata",
}

// What templates need for their work, or what makes a sandbox stricter, needs no
// loosening.
func TestHarmless(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.PodTemplate){
		"what the defaults are": pod(func(p *corev1.PodSpec) {
			p.RestartPolicy, p.HostUsers, p.ServiceAccountName = corev1.RestartPolicyNever, ptr.To(false), "default"
			p.ShareProcessNamespace, p.AutomountServiceAccountToken = ptr.To(false), ptr.To(false)
			p.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
			p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
		}),
		"a runtime":           pod(func(p *corev1.PodSpec) { p.RuntimeClassName = ptr.To("gvisor") }),
		"nodes of their own":  pod(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "sandboxes"} }),
		"a low priority":      pod(func(p *corev1.PodSpec) { p.PriorityClassName = "preheat-sandbox" }),
		"a grace period":      pod(func(p *corev1.PodSpec) { p.TerminationGracePeriodSeconds = ptr.To[int64](5) }),
		"a user":              podSecured(corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), RunAsGroup: ptr.To[int64](1000), FSGroup: ptr.To[int64](1000)}),
		"a registry's secret": pod(func(p *corev1.PodSpec) { p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}} }),
		"limits":              limit(corev1.ResourceMemory, "4Gi"),
		"variables":           sandbox(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "PREHEAT_RUNNER_WARM", Value: "python"}} }),
		"its own name":        env(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}),
		"settings":            volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
		"scratch space":       volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}),
		"a probe of its own": sandbox(func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 1}
		}),
		"a label":             label("team"),
		"a recommended label": label("app.kubernetes.io/part-of"),
		"an annotation":       annotation("cluster-autoscaler.kubernetes.io/safe-to-evict"),
	} {
		t.Run(name, func(t *testing.T) {
			tmpl := plain()
			change(&tmpl.Spec.PodTemplate)
			if b, _ := build(t, tmpl); len(b.Loosened) != 0 {
				t.Errorf("loosened %v", b.Loosened)
			}
		})
	}
}
