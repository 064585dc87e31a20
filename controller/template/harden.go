package template

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Defaults of a sandbox that its template does not set.
const (
	defaultCPU       = "1"
	defaultMemory    = "512Mi"
	defaultEphemeral = "64Mi"
	requestCPU       = "50m"
	requestMemory    = "128Mi"
	scratchSize      = "64Mi"
)

// scratch are the folders that a sandbox can write to: in memory, size-limited.
var scratch = []struct{ name, path string }{
	{"preheat-work", "/work"}, {"preheat-home", "/home/sandbox"}, {"preheat-tmp", "/tmp"},
}

// hardener fills the defaults into a Pod and notes what would weaken it.
type hardener struct {
	allowed []v1alpha1.Loosening
	// used are the loosenings that the Pod needs and the template names.
	used []v1alpha1.Loosening
	// refused are the weaknesses that the template does not name.
	refused []string
}

// weak notes that a field needs a loosening.
func (h *hardener) weak(l v1alpha1.Loosening, field string) {
	if !slices.Contains(h.allowed, l) {
		h.refused = append(h.refused, fmt.Sprintf("%s needs the loosening %s", field, l))
		return
	}
	if !slices.Contains(h.used, l) {
		h.used = append(h.used, l)
	}
}

func (h *hardener) may(l v1alpha1.Loosening) bool { return slices.Contains(h.allowed, l) }

// deny notes what no loosening allows.
func (h *hardener) deny(field, why string) {
	h.refused = append(h.refused, field+": "+why)
}

func (h *hardener) pod(p *corev1.PodSpec) {
	// A container that starts again would be a second use of the sandbox.
	if p.RestartPolicy != "" && p.RestartPolicy != corev1.RestartPolicyNever {
		h.deny("restartPolicy", "a sandbox is used once, only Never is possible")
	}
	p.RestartPolicy = corev1.RestartPolicyNever
	if len(p.EphemeralContainers) > 0 {
		h.deny("ephemeralContainers", "not possible in a template")
	}
	if p.ActiveDeadlineSeconds != nil {
		h.deny("activeDeadlineSeconds", "set by the claim")
	}
	if len(p.Containers) == 0 {
		h.deny("containers", "at least one is needed")
	}
	h.namespaces(p)
	h.identity(p)
	for i := range p.Volumes {
		h.volume(&p.Volumes[i], fmt.Sprintf("volumes[%d]", i))
	}
	for i := range p.InitContainers {
		h.container(&p.InitContainers[i], fmt.Sprintf("initContainers[%d]", i))
	}
	for i := range p.Containers {
		h.container(&p.Containers[i], fmt.Sprintf("containers[%d]", i))
	}
	p.TerminationGracePeriodSeconds = cmp.Or(p.TerminationGracePeriodSeconds, ptr.To[int64](1))
}

// namespaces keeps the sandbox out of the node's namespaces and off the
// network's names.
func (h *hardener) namespaces(p *corev1.PodSpec) {
	for field, set := range map[string]bool{"hostNetwork": p.HostNetwork, "hostPID": p.HostPID, "hostIPC": p.HostIPC} {
		if set {
			h.weak(v1alpha1.LoosenHostNamespaces, field)
		}
	}
	switch {
	case p.HostUsers == nil && h.may(v1alpha1.LoosenHostUsers):
		h.weak(v1alpha1.LoosenHostUsers, "hostUsers")
	case p.HostUsers == nil:
		p.HostUsers = ptr.To(false)
	case *p.HostUsers:
		h.weak(v1alpha1.LoosenHostUsers, "hostUsers")
	}
	if p.DNSPolicy == "" && p.DNSConfig == nil {
		// Without egress a lookup could only time out. This one is refused.
		p.DNSPolicy = corev1.DNSNone
		p.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}}
	}
}

// identity keeps API credentials and privileged users out.
func (h *hardener) identity(p *corev1.PodSpec) {
	if ptr.Deref(p.AutomountServiceAccountToken, false) {
		h.weak(v1alpha1.LoosenServiceAccountToken, "automountServiceAccountToken")
	}
	if ptr.Deref(p.EnableServiceLinks, false) {
		h.weak(v1alpha1.LoosenNetwork, "enableServiceLinks")
	}
	p.AutomountServiceAccountToken = cmp.Or(p.AutomountServiceAccountToken, ptr.To(false))
	p.EnableServiceLinks = cmp.Or(p.EnableServiceLinks, ptr.To(false))

	p.SecurityContext = cmp.Or(p.SecurityContext, &corev1.PodSecurityContext{})
	sc := p.SecurityContext
	h.user(sc.RunAsNonRoot, sc.RunAsUser, "securityContext")
	sc.RunAsNonRoot = cmp.Or(sc.RunAsNonRoot, ptr.To(true))
	h.seccomp(sc.SeccompProfile, "securityContext.seccompProfile")
	sc.SeccompProfile = cmp.Or(sc.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	if len(sc.Sysctls) > 0 {
		h.weak(v1alpha1.LoosenHostNamespaces, "securityContext.sysctls")
	}
}

func (h *hardener) user(nonRoot *bool, user *int64, field string) {
	if !ptr.Deref(nonRoot, true) {
		h.weak(v1alpha1.LoosenRunAsRoot, field+".runAsNonRoot")
	}
	if ptr.Deref(user, 1) == 0 {
		h.weak(v1alpha1.LoosenRunAsRoot, field+".runAsUser")
	}
}

func (h *hardener) seccomp(p *corev1.SeccompProfile, field string) {
	if p != nil && p.Type != corev1.SeccompProfileTypeRuntimeDefault {
		h.weak(v1alpha1.LoosenSeccomp, field)
	}
}

func (h *hardener) volume(v *corev1.Volume, field string) {
	src := &v.VolumeSource
	switch {
	case src.EmptyDir != nil:
		if src.EmptyDir.SizeLimit != nil {
			return
		}
		if h.may(v1alpha1.LoosenUnlimited) {
			h.weak(v1alpha1.LoosenUnlimited, field+".emptyDir.sizeLimit")
			return
		}
		src.EmptyDir.SizeLimit = ptr.To(resource.MustParse(scratchSize))
	case src.Projected != nil:
		for _, p := range src.Projected.Sources {
			switch {
			case p.ServiceAccountToken != nil:
				h.weak(v1alpha1.LoosenServiceAccountToken, field+".projected.serviceAccountToken")
			case p.ConfigMap == nil && p.DownwardAPI == nil:
				h.weak(v1alpha1.LoosenVolumes, field+".projected")
			}
		}
	case src.ConfigMap != nil, src.DownwardAPI != nil, src.Image != nil:
	default:
		h.weak(v1alpha1.LoosenVolumes, field)
	}
}

func (h *hardener) container(c *corev1.Container, field string) {
	for _, p := range c.Ports {
		if p.HostPort != 0 {
			h.weak(v1alpha1.LoosenHostNamespaces, field+".ports")
		}
	}
	c.SecurityContext = cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	h.securityContext(c.SecurityContext, field+".securityContext")
	h.limits(&c.Resources, field)
}

func (h *hardener) securityContext(sc *corev1.SecurityContext, field string) {
	h.user(sc.RunAsNonRoot, sc.RunAsUser, field)
	h.seccomp(sc.SeccompProfile, field+".seccompProfile")
	if ptr.Deref(sc.Privileged, false) {
		h.weak(v1alpha1.LoosenPrivilegeEscalation, field+".privileged")
	}
	if ptr.Deref(sc.AllowPrivilegeEscalation, false) {
		h.weak(v1alpha1.LoosenPrivilegeEscalation, field+".allowPrivilegeEscalation")
	}
	if ptr.Deref(sc.ProcMount, corev1.DefaultProcMount) != corev1.DefaultProcMount {
		h.weak(v1alpha1.LoosenPrivilegeEscalation, field+".procMount")
	}
	sc.AllowPrivilegeEscalation = cmp.Or(sc.AllowPrivilegeEscalation, ptr.To(false))

	if !ptr.Deref(sc.ReadOnlyRootFilesystem, true) {
		h.weak(v1alpha1.LoosenWritableRootFilesystem, field+".readOnlyRootFilesystem")
	}
	sc.ReadOnlyRootFilesystem = cmp.Or(sc.ReadOnlyRootFilesystem, ptr.To(true))

	sc.Capabilities = cmp.Or(sc.Capabilities, &corev1.Capabilities{})
	if len(sc.Capabilities.Add) > 0 {
		h.weak(v1alpha1.LoosenCapabilities, field+".capabilities.add")
	}
	if !slices.Contains(sc.Capabilities.Drop, "ALL") {
		sc.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
}

// limits sets what is missing. With Unlimited it leaves it open.
func (h *hardener) limits(r *corev1.ResourceRequirements, field string) {
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	for name, value := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: defaultCPU, corev1.ResourceMemory: defaultMemory, corev1.ResourceEphemeralStorage: defaultEphemeral,
	} {
		if _, set := r.Limits[name]; set {
			continue
		}
		if h.may(v1alpha1.LoosenUnlimited) {
			h.weak(v1alpha1.LoosenUnlimited, field+".resources.limits")
			continue
		}
		r.Limits[name] = resource.MustParse(value)
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
		for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: requestCPU, corev1.ResourceMemory: requestMemory} {
			request := resource.MustParse(value)
			if limit, set := r.Limits[name]; set && limit.Cmp(request) < 0 {
				request = limit
			}
			r.Requests[name] = request
		}
	}
}
