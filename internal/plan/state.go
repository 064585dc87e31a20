// Package plan decides what a warm pool does next. Plan is a function of the
// pool's state and the time: it has no clock, no client and no goroutine, so
// that the controller on a cluster and the pool on one machine share it, and
// so that its promises can be tested on random histories:
//
//   - it binds a sandbox to at most one claim, and only a warm one (I1, I2);
//   - it deletes only what has been retired or whose claim is over (I3); to
//     retire is to win a compare-and-set that a claim takes part in as well;
//   - sandboxes that exist and that are being created never exceed Limit, and
//     creations pause after failures, longer each time (I9).
//
// Actions may be carried out in part, late or on a stale State: each of them
// is safe by itself, and the next Plan makes up for what is missing.
package plan

import "time"

// Phase is where a sandbox is in its life.
type Phase string

// The phases. A sandbox goes from warming to warm and from either of these to
// claimed or retired, never back.
const (
	Warming Phase = "warming"
	Warm    Phase = "warm"
	Claimed Phase = "claimed"
	Retired Phase = "retired"
	// Failed: it ended, or will never be warm, before anyone claimed it.
	Failed Phase = "failed"
)

// Sandbox is one sandbox of the pool.
type Sandbox struct {
	Name  string
	Phase Phase
	// Revision is the State.Revision that it was made from.
	Revision string
	Created  time.Time
	// ClaimedAt is when it was claimed. It matters with State.Lull only.
	ClaimedAt time.Time
	// Over says of a claimed sandbox that its claim has ended, at OverSince, which
	// may be zero where it is not known.
	Over      bool
	OverSince time.Time
	// Ending says that its deletion is under way already.
	Ending bool
	// Problem says why a warming or failed sandbox is not warm, if known.
	Problem Problem
}

// Claim is a claim that has no sandbox yet.
type Claim struct {
	Name    string
	Created time.Time
	// Deadline is when it stops waiting; zero means never.
	Deadline time.Time
}

// Problem is why a pool or a sandbox is not as it should be. The zero value
// means that nothing is wrong.
type Problem struct {
	// Reason is one word in CamelCase.
	Reason  string
	Message string
}

// Reasons of the problems that Plan itself finds. They are those of package
// v1alpha1, which a pool without Kubernetes does without.
const (
	ReasonAtLimit       = "AtLimit"
	ReasonSandboxFailed = "SandboxFailed"
	ReasonWarmTimeout   = "WarmTimeout"
)

// Strategy is what happens to unclaimed sandboxes of another revision.
type Strategy string

// The strategies.
const (
	// Rolling replaces them, new ones first, within MaxUnavailable.
	Rolling Strategy = "Rolling"
	// OnReplenish leaves them to be claimed.
	OnReplenish Strategy = "OnReplenish"
	// Recreate retires all of them at once.
	Recreate Strategy = "Recreate"
)

// State is all that a decision depends on.
type State struct {
	Size Size
	// Revision is what new sandboxes are made from.
	Revision string
	// Sandboxes are all that exist, in any order.
	Sandboxes []Sandbox
	// Creating counts creations under way that Sandboxes does not show yet.
	Creating int
	// Waiting are the claims without a sandbox, in any order.
	Waiting []Claim

	// Limit bounds the sandboxes that exist at once, claimed ones included.
	Limit int
	// MaxCreating bounds the sandboxes that are warming at once.
	MaxCreating int
	// Strategy is Rolling when empty.
	Strategy Strategy
	// MaxUnavailable is how far replacing may lower the number of warm
	// sandboxes below the desired size.
	MaxUnavailable int
	// MaxAge is the age at which a warm sandbox is replaced; 0 means never.
	MaxAge time.Duration
	// WarmTimeout is how long warming may take; 0 means for ever.
	WarmTimeout time.Duration
	// Lull is how long nothing is created or destroyed after a claim for the
	// sake of the programs that have just begun, unless all of them end before:
	// where both share a processor, a short program would take twice as long.
	// Nothing is put off while less than half of a pool is warm, or a roll-out
	// goes on, and no sandbox is kept for long after its claim's end (I4).
	Lull time.Duration
	// Backoff is what the last Actions returned, with failed creations added
	// by Backoff.Failed.
	Backoff Backoff
	// Paused forbids new sandboxes, such as while there is no template. It
	// says why.
	Paused Problem
}

// Binding gives a sandbox to a claim.
type Binding struct {
	Claim, Sandbox string
}

// Actions is what to do now. The lists are disjoint but for the claims of
// Bind, each of which appears once.
type Actions struct {
	// Desired is the number of warm sandboxes that the pool aims at.
	Desired int
	// Create is how many sandboxes to create.
	Create int
	// Bind claims warm sandboxes, the oldest claim first.
	Bind []Binding
	// Retire names sandboxes to take from the claimants by compare-and-set.
	// One that was lost to a claim must be left alone.
	Retire []string
	// Delete names sandboxes to destroy.
	Delete []string
	// Memory and Backoff go into the next State.
	Memory  Memory
	Backoff Backoff
	// Wake is when to plan again even if nothing happens; zero means never.
	Wake time.Time
	// Quiet says that for the sake of programs that have just begun all else
	// is to wait until Wake; see State.Lull.
	Quiet bool
	// Problem says why the pool is not at its size.
	Problem Problem
}
