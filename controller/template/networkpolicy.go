package template

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// NetworkPolicyName is the name of a template's NetworkPolicy.
func NetworkPolicyName(template string) string { return "preheat-" + template }

// networkPolicy shuts the sandboxes of a template off: no egress, and ingress
// to the runner from claimants alone.
func networkPolicy(t *v1alpha1.SandboxTemplate) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: NetworkPolicyName(t.Name),
			Labels: map[string]string{v1alpha1.LabelTemplate: t.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: t.GetGroupVersionKind().Kind,
				Name: t.Name, UID: t.UID, Controller: ptr.To(true),
			}},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelTemplate: t.Name}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{
					NamespaceSelector: claimants(),
					PodSelector:       claimants(),
				}},
				Ports: []networkingv1.NetworkPolicyPort{{
					Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(t.Spec.RunnerPort)),
				}},
			}},
		},
	}
}

// claimants selects what has the claimants' label.
func claimants() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1alpha1.LabelClaimant, Operator: metav1.LabelSelectorOpExists},
	}}
}
