package template_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/template"
)

// TestKeysAreForNoTemplate: no loosening gives a sandbox the Secret from which
// the tokens of all sandboxes are made; other Secrets it does.
func TestKeysAreForNoTemplate(t *testing.T) {
	t.Parallel()
	const volumes = "spec.podTemplate.spec.volumes[0]."
	for name, test := range map[string]struct {
		change func(secret string) func(*v1alpha1.PodTemplate)
		field  string
	}{
		"a variable": {func(s string) func(*v1alpha1.PodTemplate) {
			return env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: s}, Key: "k"}})
		}, "spec.podTemplate.spec.containers[0].env[0].valueFrom.secretKeyRef"},
		"variables": {func(s string) func(*v1alpha1.PodTemplate) {
			return sandbox(func(c *corev1.Container) {
				c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: s}}}}
			})
		}, "spec.podTemplate.spec.containers[0].envFrom[0].secretRef"},
		"a volume": {func(s string) func(*v1alpha1.PodTemplate) {
			return volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s}})
		}, volumes + "secret"},
		"a projected volume": {func(s string) func(*v1alpha1.PodTemplate) {
			return volume(projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s}}}))
		}, volumes + "projected.sources[0].secret"},
		"a driver's secret": {func(s string) func(*v1alpha1.PodTemplate) {
			return volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", NodePublishSecretRef: &corev1.LocalObjectReference{Name: s}}})
		}, volumes + "csi"},
		"a driver's attribute": {func(s string) func(*v1alpha1.PodTemplate) {
			return volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"secretName": s}}})
		}, volumes + "csi"},
		"another driver's secret": {func(s string) func(*v1alpha1.PodTemplate) {
			return volume(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "d", SecretRef: &corev1.LocalObjectReference{Name: s}}})
		}, volumes + "flexVolume"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			build := func(secret string) error {
				tmpl := plain()
				tmpl.Spec.Loosen = loosenings
				test.change(secret)(&tmpl.Spec.PodTemplate)
				_, err := template.Build(tmpl, template.DefaultCeiling())
				return err
			}
			if err := build("other"); err != nil {
				t.Errorf("another Secret: %v", err)
			}
			err := build(token.SecretName)
			if want := test.field + ": the Secret preheat-sandbox-keys has the keys of all sandboxes"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		})
	}
}
