package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// SandboxClaim binds one sandbox for as long as it exists. The Pod whose label
// sandbox.preheat.dev/claim holds the claim's name is its sandbox; when the
// claim is deleted or its time is over, that Pod is deleted.
//
// +genclient
// +genreconciler
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sbc,categories=preheat
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Sandbox",type=string,JSONPath=`.status.sandbox.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Pool",type=string,priority=1,JSONPath=`.spec.warmPoolRef.name`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Session",type=string,priority=1,JSONPath=`.spec.session.language`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must be no more than 63 characters: it becomes a label of the Pod"
type SandboxClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   SandboxClaimSpec   `json:"spec"`
	Status SandboxClaimStatus `json:"status,omitempty"`
}

// SandboxClaimSpec is what is claimed, and for how long. It never changes.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a claim's spec is immutable"
type SandboxClaimSpec struct {
	// WarmPoolRef names the pool, in the claim's own namespace.
	WarmPoolRef Reference `json:"warmPoolRef"`
	// Binding says who takes the sandbox. A claimant that sees the pool's
	// Pods saves itself the wait for the controller.
	// +kubebuilder:default=Controller
	Binding Binding `json:"binding,omitempty"`
	// BindTimeoutSeconds is how long the claim waits for a sandbox.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	BindTimeoutSeconds int32 `json:"bindTimeoutSeconds,omitempty"`
	// +kubebuilder:default={}
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
	// Session makes it the claim of a session: its sandbox serves several runs,
	// whichever process they come through, and ends itself when it is not used.
	Session *ClaimSession `json:"session,omitempty"`
}

// ClaimSession is what the sandbox of a session needs to be known of.
type ClaimSession struct {
	// Language is what runs in it.
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9+#._-]*$`
	// +kubebuilder:validation:MaxLength=32
	Language string `json:"language"`
	// IdleSeconds is how long it stays unused.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	IdleSeconds int32 `json:"idleSeconds"`
}

// Binding says who takes the sandbox for a claim.
// +kubebuilder:validation:Enum=Controller;Claimant
type Binding string

// The kinds of binding.
const (
	// BindingController: the controller binds it, claims in order of their
	// creation.
	BindingController Binding = "Controller"
	// BindingClaimant: its creator labels a Pod itself.
	BindingClaimant Binding = "Claimant"
)

// Lifecycle bounds a claim's time.
type Lifecycle struct {
	// ShutdownTime is when the claim's sandbox ends at the latest. When it is
	// not set, that is one hour after the claim's creation.
	ShutdownTime *metav1.Time `json:"shutdownTime,omitempty"`
	// TTLSecondsAfterFinished is how long a claim that ended by itself is
	// kept to be looked at.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SandboxClaimStatus is what the controller last saw.
type SandboxClaimStatus struct {
	duckv1.Status `json:",inline"`
	// Sandbox is the bound sandbox.
	Sandbox *BoundSandbox `json:"sandbox,omitempty"`
	// FinishedAt is when the claim ended by itself.
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Answer is what came of the claim of an event, for whoever delivers the
	// event again: the completed event in JSON, compressed by gzip.
	// +kubebuilder:validation:MaxLength=262144
	Answer []byte `json:"answer,omitempty"`
}

// BoundSandbox is the sandbox of a claim.
type BoundSandbox struct {
	// Name is the Pod's name.
	Name string `json:"name"`
	// PodIPs are the Pod's addresses.
	// +listType=atomic
	PodIPs []string `json:"podIPs,omitempty"`
}

// SandboxClaimList is a list of claims.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type SandboxClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []SandboxClaim `json:"items"`
}

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*SandboxClaim) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("SandboxClaim")
}

// GetStatus implements duckv1.KRShaped.
func (c *SandboxClaim) GetStatus() *duckv1.Status { return &c.Status.Status }
