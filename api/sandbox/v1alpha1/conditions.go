package v1alpha1

import "knative.dev/pkg/apis"

// Condition types.
const (
	// ConditionReady of a pool: as many sandboxes are warm as should be; of a
	// claim: it has a sandbox; of a template: sandboxes can be made from it.
	ConditionReady = apis.ConditionReady
	// ConditionTemplateReady of a pool: its template is Ready.
	ConditionTemplateReady apis.ConditionType = "TemplateReady"
	// ConditionFilled of a pool: as many sandboxes are warm as should be.
	ConditionFilled apis.ConditionType = "Filled"
	// ConditionValid of a template: nothing in it is refused.
	ConditionValid apis.ConditionType = "Valid"
	// ConditionNetworkPolicy of a template: its NetworkPolicy is in place.
	ConditionNetworkPolicy apis.ConditionType = "NetworkPolicy"
	// ConditionNetworkIsolated of a template: the cluster enforces its
	// NetworkPolicy. It does not count towards Ready.
	ConditionNetworkIsolated apis.ConditionType = "NetworkIsolated"
	// ConditionHardened of a template: no default is set aside. It does not
	// count towards Ready.
	ConditionHardened apis.ConditionType = "Hardened"
)

// Condition reasons: a closed set.
const (
	// Of pools.
	ReasonTemplateNotFound = "TemplateNotFound"
	ReasonTemplateInvalid  = "TemplateInvalid"
	ReasonQuotaExceeded    = "QuotaExceeded"
	ReasonForbidden        = "Forbidden"
	ReasonInvalidPod       = "InvalidPod"
	ReasonCreateFailed     = "CreateFailed"
	ReasonImagePullFailed  = "ImagePullFailed"
	ReasonUnschedulable    = "Unschedulable"
	ReasonSandboxFailed    = "SandboxFailed"
	ReasonWarmTimeout      = "WarmTimeout"
	ReasonAtLimit          = "AtLimit"
	ReasonWarming          = "Warming"

	// Of claims.
	ReasonWaiting      = "Waiting"
	ReasonPoolNotFound = "PoolNotFound"
	ReasonNoSandbox    = "NoSandboxInTime"
	ReasonSandboxLost  = "SandboxLost"
	ReasonExpired      = "Expired"
	ReasonAnswered     = "Answered"
	ReasonInterrupted  = "Interrupted"
	// Of claims of sessions: closed by their callers, unused for as long as they stay
	// so, or ended with a sandbox that was told to shut down.
	ReasonClosed   = "Closed"
	ReasonIdle     = "Idle"
	ReasonShutdown = "Shutdown"
	// ReasonAnswerDropped: the answer was dropped to make room for later ones.
	ReasonAnswerDropped = "AnswerDropped"

	// Of templates.
	ReasonLoosened  = "Loosened"
	ReasonRefused   = "Refused"
	ReasonUnmanaged = "Unmanaged"
	// ReasonForeignNetworkPolicy: somebody else's NetworkPolicy has the name.
	ReasonForeignNetworkPolicy = "ForeignNetworkPolicy"
	// The network of its sandboxes.
	ReasonUntried     = "Untried"
	ReasonNotEnforced = "NotEnforced"
)

// GetConditionSet implements duckv1.KRShaped.
func (*SandboxTemplate) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet(ConditionValid, ConditionNetworkPolicy)
}

// GetConditionSet implements duckv1.KRShaped.
func (*SandboxWarmPool) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet(ConditionTemplateReady, ConditionFilled)
}

// GetConditionSet implements duckv1.KRShaped.
func (*SandboxClaim) GetConditionSet() apis.ConditionSet {
	return apis.NewLivingConditionSet()
}
