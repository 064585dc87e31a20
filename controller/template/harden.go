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

// hardener fills in what a template leaves open, so that the Pod is as strong as
// its loosenings allow.
type hardener struct{ *checker }

func (h *hardener) may(l v1alpha1.Loosening) bool { return slices.Contains(h.allowed, l) }

// pod fills in a Pod's defaults. What the template sets has been checked.
func (h *hardener) pod(p *corev1.PodSpec) {
	p.RestartPolicy = corev1.RestartPolicyNever
	p.TerminationGracePeriodSeconds = cmp.Or(p.TerminationGracePeriodSeconds, ptr.To[int64](1))
	p.AutomountServiceAccountToken = cmp.Or(p.AutomountServiceAccountToken, ptr.To(false))
	p.EnableServiceLinks = cmp.Or(p.EnableServiceLinks, ptr.To(false))
	switch {
	case p.HostUsers != nil:
	case h.may(v1alpha1.LoosenHostUsers):
		h.weak(v1alpha1.LoosenHostUsers, specPath+".hostUsers")
	default:
		p.HostUsers = ptr.To(false)
	}
	if p.DNSPolicy == "" && p.DNSConfig == nil {
		// Without egress a lookup could only time out. This one is refused.
		p.DNSPolicy = corev1.DNSNone
		p.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"127.0.0.1"}}
	}
	p.SecurityContext = cmp.Or(p.SecurityContext, &corev1.PodSecurityContext{})
	p.SecurityContext.RunAsNonRoot = cmp.Or(p.SecurityContext.RunAsNonRoot, ptr.To(true))
	p.SecurityContext.SeccompProfile = cmp.Or(p.SecurityContext.SeccompProfile,
		&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})

	for i := range p.Volumes {
		h.volume(&p.Volumes[i], fmt.Sprintf("%s.volumes[%d]", specPath, i))
	}
	for i := range p.InitContainers {
		h.container(&p.InitContainers[i], fmt.Sprintf("%s.initContainers[%d]", specPath, i))
	}
	for i := range p.Containers {
		h.container(&p.Containers[i], fmt.Sprintf("%s.containers[%d]", specPath, i))
	}
}

func (h *hardener) volume(v *corev1.Volume, field string) {
	switch {
	case v.EmptyDir == nil || v.EmptyDir.SizeLimit != nil:
	case h.may(v1alpha1.LoosenUnlimited):
		h.weak(v1alpha1.LoosenUnlimited, field+".emptyDir.sizeLimit")
	default:
		v.EmptyDir.SizeLimit = ptr.To(resource.MustParse(scratchSize))
	}
}

func (h *hardener) container(c *corev1.Container, field string) {
	c.SecurityContext = cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	sc := c.SecurityContext
	sc.AllowPrivilegeEscalation = cmp.Or(sc.AllowPrivilegeEscalation, ptr.To(false))
	sc.ReadOnlyRootFilesystem = cmp.Or(sc.ReadOnlyRootFilesystem, ptr.To(true))
	sc.Capabilities = cmp.Or(sc.Capabilities, &corev1.Capabilities{})
	if !slices.Contains(sc.Capabilities.Drop, "ALL") {
		sc.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
	h.limits(&c.Resources, field)
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
