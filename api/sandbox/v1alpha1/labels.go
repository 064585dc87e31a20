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
	// LabelClaimUID is the UID of that claim, where whoever bound it knew it:
	// a later claim of the same name does not inherit the sandbox.
	LabelClaimUID = GroupName + "/claim-uid"
	// LabelTrace is the traceparent of whoever claimed it, if that is traced.
	LabelTrace = GroupName + "/traceparent"
)

// AnnotationTrace is the traceparent of a claim's claimant, if that is traced.
const AnnotationTrace = GroupName + "/traceparent"

// AnnotationTokenKey is the id of the key from which a sandbox's token is made;
// see package token.
const AnnotationTokenKey = GroupName + "/token-key"

// AnnotationSession is what is known of a session, on the Pod that is its sandbox;
// see package session.
const AnnotationSession = GroupName + "/session"

// AnnotationBegun says of the claim of an event whether its program may have
// begun: "false" from the claim's creation, "true" before its sandbox gets the
// program. A claim that is over and says "false" never ran anything.
const AnnotationBegun = GroupName + "/begun"

// Values of LabelState.
const (
	// StateWarm: nobody's. It may be claimed once the Pod is Ready.
	StateWarm = "warm"
	// StateClaimed: the claim's in LabelClaim, for good.
	StateClaimed = "claimed"
	// StateRetired: the controller's, to be deleted.
	StateRetired = "retired"
)

// Variables that the controller sets for the runner of a sandbox.
const (
	// EnvTokenHash holds the SHA-256 of the token that the one run must carry,
	// in hexadecimal.
	EnvTokenHash = "PREHEAT_RUNNER_TOKEN_SHA256"
	// EnvToken holds that token itself, in a Pod without EnvTokenHash.
	EnvToken = "PREHEAT_RUNNER_TOKEN"
	// EnvListen holds the address on which the runner takes it.
	EnvListen = "PREHEAT_RUNNER_LISTEN"
	// EnvProbe holds the address on which it answers the kubelet's probe.
	EnvProbe = "PREHEAT_RUNNER_PROBE"
)

// LabelClaimant marks the Pods that may reach the runners of sandboxes, and the
// namespaces in which they are: whoever makes Pods must not admit them as well.
const LabelClaimant = GroupName + "/claimant"
