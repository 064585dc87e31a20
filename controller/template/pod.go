package template

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Blueprint is what a template yields: a hardened Pod, but for what differs
// from one sandbox to the next.
type Blueprint struct {
	meta v1alpha1.PodMetadata
	spec corev1.PodSpec
	name string
	// Revision identifies everything in the blueprint.
	Revision string
	// Loosened are the defaults that the template sets aside, sorted.
	Loosened []v1alpha1.Loosening
}

// RefusedError says why no sandbox can be made from a template.
type RefusedError struct{ Reasons []string }

// Error implements error.
func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "; ") }

// Paths of what a template says, as refusals show them.
const (
	templatePath = "spec.podTemplate"
	specPath     = templatePath + ".spec"
)

// Build returns the blueprint of t, or a *RefusedError.
func Build(t *v1alpha1.SandboxTemplate, ceiling Ceiling) (*Blueprint, error) {
	c := &checker{rules: rules(ceiling), allowed: t.Spec.Loosen}
	c.object(reflect.ValueOf(t.Spec.PodTemplate), templatePath)
	if len(t.Spec.PodTemplate.Spec.Containers) == 0 {
		c.deny(specPath+".containers", "at least one is needed")
	}
	if t.Spec.NetworkPolicyManagement == v1alpha1.NetworkPolicyUnmanaged {
		c.weak(v1alpha1.LoosenNetwork, "spec.networkPolicyManagement")
	}
	if len(c.refused) > 0 {
		slices.Sort(c.refused)
		return nil, &RefusedError{Reasons: slices.Compact(c.refused)}
	}
	b := &Blueprint{meta: t.Spec.PodTemplate.Metadata, spec: *t.Spec.PodTemplate.Spec.DeepCopy(), name: t.Name}
	h := &hardener{c}
	h.pod(&b.spec)
	slices.Sort(c.used)
	b.Loosened = c.used
	addScratch(&b.spec)
	addRunner(&b.spec, t.Spec.RunnerPort)
	var err error
	b.Revision, err = revision(b.meta, b.spec)
	return b, err
}

func revision(parts ...any) (string, error) {
	data, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("hash a pod template: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:5]), nil
}

// addScratch gives the first container folders to write to, unless the
// template mounts something else there.
func addScratch(p *corev1.PodSpec) {
	c := &p.Containers[0]
	for _, s := range scratch {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == s.path }) {
			continue
		}
		p.Volumes = append(p.Volumes, corev1.Volume{Name: s.name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse(scratchSize))},
		}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: s.name, MountPath: s.path})
	}
}

// addRunner tells the runner where to listen, and the kubelet where to learn that
// its interpreters are warm: one startup probe, which waits until they are. The
// kubelet goes on with readiness probes for as long as a sandbox waits, and
// beyond its end; who claims one finds out by itself whether it answers.
func addRunner(p *corev1.PodSpec, port int32) {
	c := &p.Containers[0]
	setEnv(c, v1alpha1.EnvListen, ":"+strconv.Itoa(int(port)))
	if c.ReadinessProbe != nil || c.StartupProbe != nil {
		return
	}
	probe := port + 1
	if port == maxPort {
		probe = port - 1
	}
	setEnv(c, v1alpha1.EnvProbe, ":"+strconv.Itoa(int(probe)))
	c.StartupProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(probe)}},
		PeriodSeconds: 1, TimeoutSeconds: 30, FailureThreshold: 10,
	}
}

const maxPort = 65535

func setEnv(c *corev1.Container, name, value string) {
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
}

// Admission is what a sandbox knows of its token.
type Admission struct {
	// Key is the id of the key of its token, Hash the token's hash.
	Key, Hash string
}

// Pod returns the Pod of a new sandbox of a pool. The pool owns it as long as
// nobody has claimed it.
func (b *Blueprint) Pod(pool *v1alpha1.SandboxWarmPool, name string, a Admission) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pool.Namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: pool.GetGroupVersionKind().Kind,
				Name: pool.Name, UID: pool.UID, Controller: ptr.To(true),
			}},
		},
		Spec: *b.spec.DeepCopy(),
	}
	for k, v := range b.meta.Labels {
		pod.Labels[k] = v
	}
	for k, v := range b.meta.Annotations {
		pod.Annotations[k] = v
	}
	pod.Labels[v1alpha1.LabelState] = v1alpha1.StateWarm
	pod.Labels[v1alpha1.LabelPool] = pool.Name
	pod.Labels[v1alpha1.LabelTemplate] = b.name
	pod.Labels[v1alpha1.LabelRevision] = b.Revision
	pod.Annotations[v1alpha1.AnnotationTokenKey] = a.Key
	setEnv(&pod.Spec.Containers[0], v1alpha1.EnvTokenHash, a.Hash)
	return pod
}
