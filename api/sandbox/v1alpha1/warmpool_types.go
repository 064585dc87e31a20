package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// SandboxWarmPool keeps sandboxes of one template warm. A claimed sandbox
// leaves the pool and is replaced.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +genreconciler
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=swp,categories=preheat
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Desired",type=integer,priority=1,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Warming",type=integer,priority=1,JSONPath=`.status.warmingReplicas`
// +kubebuilder:printcolumn:name="Claimed",type=integer,priority=1,JSONPath=`.status.claimedReplicas`
// +kubebuilder:printcolumn:name="Template",type=string,priority=1,JSONPath=`.spec.sandboxTemplateRef.name`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name must be no more than 52 characters: Pods are named after it"
type SandboxWarmPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   SandboxWarmPoolSpec   `json:"spec"`
	Status SandboxWarmPoolStatus `json:"status,omitempty"`
}

// SandboxWarmPoolSpec is the wanted pool.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) != has(self.autoscaling)",message="exactly one of replicas and autoscaling must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSandboxes) || !has(self.replicas) || self.replicas <= self.maxSandboxes",message="replicas must not exceed maxSandboxes"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSandboxes) || !has(self.autoscaling) || self.autoscaling.max <= self.maxSandboxes",message="autoscaling.max must not exceed maxSandboxes"
type SandboxWarmPoolSpec struct {
	// SandboxTemplateRef names the template, in the pool's own namespace.
	SandboxTemplateRef Reference `json:"sandboxTemplateRef"`
	// Replicas is how many sandboxes are kept warm.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`
	// Autoscaling sizes the pool by the measured claim rate instead.
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
	// MaxSandboxes bounds the sandboxes that exist at once, claimed ones
	// included. When it is not set, it is twice the largest warm size, and
	// 20 at least.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxSandboxes *int32 `json:"maxSandboxes,omitempty"`
	// UpdateStrategy says how warm sandboxes follow a changed template.
	// +kubebuilder:default={type: RollingUpdate}
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`
	// MaxAge is the age at which a warm sandbox is replaced by a new one.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="must be between 1m and 8760h"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
	// ProgressDeadlineSeconds is how long a sandbox may take to become warm
	// before it counts as failed.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`
}

// Largest is how many sandboxes can be wanted warm.
func (s *SandboxWarmPoolSpec) Largest() int {
	switch {
	case s.Autoscaling != nil:
		return int(s.Autoscaling.Max)
	case s.Replicas != nil:
		return int(*s.Replicas)
	}
	return 0
}

// Reference names an object of a known kind in the same namespace.
type Reference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// Autoscaling bounds a pool that sizes itself.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min must not exceed max"
type Autoscaling struct {
	// Min is the smallest number of warm sandboxes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Min int32 `json:"min"`
	// Max is the largest.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Max int32 `json:"max"`
}

// UpdateStrategy says how warm sandboxes follow a changed template.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || self.type == 'RollingUpdate'",message="rollingUpdate belongs to the type RollingUpdate"
type UpdateStrategy struct {
	// +kubebuilder:default=RollingUpdate
	Type UpdateStrategyType `json:"type,omitempty"`
	// RollingUpdate tunes the type RollingUpdate.
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// UpdateStrategyType is a kind of update.
// +kubebuilder:validation:Enum=RollingUpdate;OnReplenish;Recreate
type UpdateStrategyType string

// The kinds of update.
const (
	// UpdateRolling creates new sandboxes first and then retires old ones.
	UpdateRolling UpdateStrategyType = "RollingUpdate"
	// UpdateOnReplenish leaves old sandboxes to be claimed.
	UpdateOnReplenish UpdateStrategyType = "OnReplenish"
	// UpdateRecreate retires all old sandboxes at once.
	UpdateRecreate UpdateStrategyType = "Recreate"
)

// RollingUpdate tunes a rolling update.
type RollingUpdate struct {
	// MaxUnavailable is how far the number of warm sandboxes may fall below
	// the wanted one. With 0, old ones go only as new ones come.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
}

// SandboxWarmPoolStatus is what the controller last saw. Its counts are
// written at most once a second.
type SandboxWarmPoolStatus struct {
	duckv1.Status `json:",inline"`
	// Replicas counts the unclaimed sandboxes, warm or not.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas counts the warm ones.
	ReadyReplicas int32 `json:"readyReplicas"`
	// WarmingReplicas counts those that will be warm.
	WarmingReplicas int32 `json:"warmingReplicas"`
	// ClaimedReplicas counts the claimed sandboxes that still exist.
	ClaimedReplicas int32 `json:"claimedReplicas"`
	// UpdatedReplicas counts the warm ones of the template's latest content.
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// DesiredReplicas is how many should be warm.
	DesiredReplicas int32 `json:"desiredReplicas"`
	// WaitingClaims counts the claims that have no sandbox yet.
	WaitingClaims int32 `json:"waitingClaims"`
	// Selector selects the pool's unclaimed sandboxes, as text.
	Selector string `json:"selector,omitempty"`
}

// SandboxWarmPoolList is a list of pools.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type SandboxWarmPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []SandboxWarmPool `json:"items"`
}

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*SandboxWarmPool) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("SandboxWarmPool")
}

// GetStatus implements duckv1.KRShaped.
func (p *SandboxWarmPool) GetStatus() *duckv1.Status { return &p.Status.Status }
