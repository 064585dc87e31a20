package stage

import (
	"bytes"
	"context"
	"fmt"
	"os"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// applyPolicies creates the admission policies of a file.
func (s *Stage) applyPolicies(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	api := s.Kube.AdmissionregistrationV1()
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &meta); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		switch meta.Kind {
		case "ValidatingAdmissionPolicy":
			policy := &admissionv1.ValidatingAdmissionPolicy{}
			if err = yaml.UnmarshalStrict(doc, policy); err == nil {
				_, err = api.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
			}
		case "ValidatingAdmissionPolicyBinding":
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
			if err = yaml.UnmarshalStrict(doc, binding); err == nil {
				_, err = api.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
			}
		default:
			err = fmt.Errorf("a %s", meta.Kind)
		}
		if err != nil {
			return fmt.Errorf("create the admission policies of %s: %w", file, err)
		}
	}
	return nil
}
