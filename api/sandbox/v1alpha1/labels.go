package v1alpha1

// Labels of a sandbox's Pod.
const (
	// LabelState is the lock of a sandbox. It is created as StateWarm and
	// changed once, by a JSON Patch that tests for StateWarm first.
	LabelState = GroupName + "/state"
	// LabelPool names the pool that made the sandbox.
	LabelPool = GroupName + "/pool"
	// LabelTemplate names the template that it was made from.
	LabelTemplate = GroupName + "/template"
	// LabelRevision identifies that template's content.
	LabelRevision = GroupName + "/revision"
	// LabelClaim names the claim of a claimed sandbox.
	LabelClaim = GroupName + "/claim"
)

// Values of LabelState.
const (
	// StateWarm: nobody's. It may be claimed once the Pod is Ready.
	StateWarm = "warm"
	// StateClaimed: the claim's in LabelClaim, for good.
	StateClaimed = "claimed"
	// StateRetired: the controller's, to be deleted.
	StateRetired = "retired"
)

// AnnotationRequest is the id of the execution that claimed a sandbox.
const AnnotationRequest = GroupName + "/request"

// EnvToken is the variable by which a sandbox's runner gets its token.
const EnvToken = "PREHEAT_TOKEN"
