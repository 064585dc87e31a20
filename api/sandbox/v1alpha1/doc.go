// Package v1alpha1 holds the custom resources of Preheat's warm pools:
// SandboxTemplate says what a sandbox is, SandboxWarmPool keeps some of them
// warm as Pods, and SandboxClaim binds one Pod to one user of it.
//
// Field names are those that users of the Kubernetes agent-sandbox project
// know. There is no object between a pool and its Pods: the labels in this
// package, on the Pod itself, are the whole state of a sandbox.
//
// +k8s:deepcopy-gen=package
// +groupName=sandbox.preheat.dev
package v1alpha1
