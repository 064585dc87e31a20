package template

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// policyPrefix begins the names of the templates' NetworkPolicies.
const policyPrefix = "preheat-"

// NetworkPolicyName is the name of a template's NetworkPolicy.
func NetworkPolicyName(template string) string { return policyPrefix + template }

// templateOf returns the template that a NetworkPolicy belongs to by its name,
// whoever made it.
func templateOf(p *networkingv1.NetworkPolicy) (template types.NamespacedName, ok bool) {
	name, ok := strings.CutPrefix(p.Name, policyPrefix)
	return types.NamespacedName{Namespace: p.Namespace, Name: name}, ok && name != ""
}

// managed reports whether p is the NetworkPolicy that this controller keeps for
// a template. The label says so: no template owns the policy, see networkPolicy.
func managed(p *networkingv1.NetworkPolicy, template string) bool {
	owner := metav1.GetControllerOf(p)
	return p.Labels[v1alpha1.LabelTemplate] == template && (owner == nil || ownedByTemplate(*owner))
}

func ownedByTemplate(o metav1.OwnerReference) bool {
	return o.APIVersion == v1alpha1.SchemeGroupVersion.String() && o.Kind == (&v1alpha1.SandboxTemplate{}).GetGroupVersionKind().Kind
}

// networkPolicy shuts the sandboxes of a template off: no egress, and ingress
// to the runner from claimants alone. The template does not own it: it would be
// deleted with the template, while programs run in sandboxes of that template.
func networkPolicy(t *v1alpha1.SandboxTemplate) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: NetworkPolicyName(t.Name),
			Labels: map[string]string{v1alpha1.LabelTemplate: t.Name},
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
