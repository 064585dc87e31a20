package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// SandboxTemplate says what a sandbox is made of. The controller hardens the
// Pod that it describes: what is left open is filled in, and what would weaken
// the sandbox is refused unless spec.loosen names it.
//
// +genclient
// +genreconciler
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sbt,categories=preheat
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Hardened",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Hardened")].status`
// +kubebuilder:printcolumn:name="Languages",type=string,priority=1,JSONPath=`.spec.languages[*].name`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must be no more than 63 characters"
type SandboxTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   SandboxTemplateSpec   `json:"spec"`
	Status SandboxTemplateStatus `json:"status,omitempty"`
}

// SandboxTemplateSpec is the wanted sandbox.
type SandboxTemplateSpec struct {
	// PodTemplate is the sandbox's Pod. Its first container runs the runner.
	PodTemplate PodTemplate `json:"podTemplate"`
	// Languages are what the runner in this sandbox can run.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Languages []Language `json:"languages"`
	// RunnerPort is the TCP port on which the runner takes its one execution.
	// +kubebuilder:default=7070
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	RunnerPort int32 `json:"runnerPort,omitempty"`
	// NetworkPolicyManagement says who keeps the sandboxes' NetworkPolicy.
	// Managed: no egress at all, ingress to the runner's port only from Pods
	// with the label sandbox.preheat.dev/claimant, in namespaces that have it.
	// +kubebuilder:default=Managed
	NetworkPolicyManagement NetworkPolicyManagement `json:"networkPolicyManagement,omitempty"`
	// Loosen lists the defaults that this template may set aside.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Loosen []Loosening `json:"loosen,omitempty"`
}

// PodTemplate is the metadata and the specification of a sandbox's Pod.
type PodTemplate struct {
	Metadata PodMetadata `json:"metadata,omitempty"`
	// +required
	Spec corev1.PodSpec `json:"spec"`
}

// PodMetadata is what a template may say about a Pod's metadata.
type PodMetadata struct {
	// Labels are added to the Pod. Those of sandbox.preheat.dev are refused.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('sandbox.preheat.dev/'))",message="labels of sandbox.preheat.dev are set by the controller"
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are added to the Pod.
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Language is a language that sandboxes of the template offer.
type Language struct {
	// Name is what a request asks for.
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9+#._-]*$`
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// Aliases are other names for it.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=32
	Aliases []string `json:"aliases,omitempty"`
	// Version is what the interpreter says of itself.
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// Warm says that its interpreter is started ahead.
	Warm bool `json:"warm,omitempty"`
}

// NetworkPolicyManagement says who keeps a NetworkPolicy.
// +kubebuilder:validation:Enum=Managed;Unmanaged
type NetworkPolicyManagement string

// The kinds of management.
const (
	NetworkPolicyManaged   NetworkPolicyManagement = "Managed"
	NetworkPolicyUnmanaged NetworkPolicyManagement = "Unmanaged"
)

// Loosening names one default that a template may set aside.
// +kubebuilder:validation:Enum=RunAsRoot;Capabilities;PrivilegeEscalation;Seccomp;WritableRootFilesystem;HostUsers;ServiceAccountToken;HostNamespaces;Volumes;Unlimited;Network;Secrets;ServiceAccount;Scheduling;Sidecars;AppArmor;SELinux;Devices;Metadata
type Loosening string

// The loosenings.
const (
	// LoosenRunAsRoot allows the root user.
	LoosenRunAsRoot Loosening = "RunAsRoot"
	// LoosenCapabilities allows added capabilities.
	LoosenCapabilities Loosening = "Capabilities"
	// LoosenPrivilegeEscalation allows setuid programs and privileged
	// containers.
	LoosenPrivilegeEscalation Loosening = "PrivilegeEscalation"
	// LoosenSeccomp allows another seccomp profile than RuntimeDefault.
	LoosenSeccomp Loosening = "Seccomp"
	// LoosenWritableRootFilesystem allows writing to the image's files.
	LoosenWritableRootFilesystem Loosening = "WritableRootFilesystem"
	// LoosenHostUsers allows sandboxes without a user namespace of their
	// own, for clusters that have none.
	LoosenHostUsers Loosening = "HostUsers"
	// LoosenServiceAccountToken allows an API token inside.
	LoosenServiceAccountToken Loosening = "ServiceAccountToken"
	// LoosenHostNamespaces allows the node's network, PID or IPC namespace,
	// ports of the node and sysctls.
	LoosenHostNamespaces Loosening = "HostNamespaces"
	// LoosenVolumes allows volumes that reach beyond the sandbox.
	LoosenVolumes Loosening = "Volumes"
	// LoosenUnlimited allows containers and volumes without limits, and limits
	// above the controller's ceiling.
	LoosenUnlimited Loosening = "Unlimited"
	// LoosenNetwork allows an unmanaged NetworkPolicy, and names that sandboxes
	// can look up.
	LoosenNetwork Loosening = "Network"
	// LoosenSecrets allows the contents of Secrets inside.
	LoosenSecrets Loosening = "Secrets"
	// LoosenServiceAccount allows another service account than default.
	LoosenServiceAccount Loosening = "ServiceAccount"
	// LoosenScheduling allows tolerations, another scheduler, a fixed node and
	// the system's priority classes.
	LoosenScheduling Loosening = "Scheduling"
	// LoosenSidecars allows more containers than the runner's.
	LoosenSidecars Loosening = "Sidecars"
	// LoosenAppArmor allows another AppArmor profile than RuntimeDefault.
	LoosenAppArmor Loosening = "AppArmor"
	// LoosenSELinux allows a chosen SELinux context.
	LoosenSELinux Loosening = "SELinux"
	// LoosenDevices allows devices, huge pages and other special resources.
	LoosenDevices Loosening = "Devices"
	// LoosenMetadata allows labels and annotations that others may act on, such
	// as those that add networks, tokens or containers to a Pod.
	LoosenMetadata Loosening = "Metadata"
)

// SandboxTemplateStatus is what the controller made of a template.
type SandboxTemplateStatus struct {
	duckv1.Status `json:",inline"`
	// Revision identifies the Pod that the template now yields.
	Revision string `json:"revision,omitempty"`
}

// SandboxTemplateList is a list of templates.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type SandboxTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []SandboxTemplate `json:"items"`
}

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*SandboxTemplate) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("SandboxTemplate")
}

// GetStatus implements duckv1.KRShaped.
func (t *SandboxTemplate) GetStatus() *duckv1.Status { return &t.Status.Status }
