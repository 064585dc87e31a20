// Package pool is how execute gets a sandbox. Behind it stand pool/local
// (sandboxes on this machine) and pool/kube (pods of a warm pool). Both keep
// the same promises:
//
//   - a Sandbox that Claim returned belongs to this caller alone and has never
//     run anything (invariants I1 and I2);
//   - the caller owns it until Release, and must call Release exactly once;
//   - after Release, or when the caller's process dies, the sandbox and
//     everything in it ends within a few seconds (I4).
package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// Errors that Claim returns, wrapped with what was being done.
var (
	// ErrNoSandbox: no sandbox became warm before the context's deadline.
	ErrNoSandbox = errors.New("no sandbox became free in time")
	// ErrUnknownLanguage: no pool offers the language.
	ErrUnknownLanguage = errors.New("unknown language")
	// ErrUnknownPool: there is no pool of that name.
	ErrUnknownPool = errors.New("unknown pool")
	// ErrOverQuota: the platform refuses another sandbox for now.
	ErrOverQuota = errors.New("over quota")
	// ErrDelivered: the event has been, or is being, run by another delivery.
	ErrDelivered = errors.New("the event has been delivered before")
	// ErrInterrupted: the event's program has begun, and nobody knows what
	// came of it.
	ErrInterrupted = errors.New("the event's execution was interrupted")
	// ErrAnswerDropped: the event has been answered, and the answer was dropped
	// to make room for later ones.
	ErrAnswerDropped = errors.New("the event's answer is no longer kept")
	// ErrTooLarge: an answer exceeds what the record of an event holds.
	ErrTooLarge = errors.New("the answer is too large to be recorded")
	// ErrClosed: the pool is shutting down or cannot serve at all.
	ErrClosed = errors.New("the pool is closed")
)

// TooLargeError is an ErrTooLarge that says by how much.
type TooLargeError struct {
	// Size is the answer's size as it would be recorded, Max what there is
	// room for.
	Size, Max int
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d bytes where %d fit", ErrTooLarge, e.Size, e.Max)
}

// Is makes it an ErrTooLarge.
func (*TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// Errors that Sandbox.Run returns, wrapped with what was being done.
var (
	// ErrSandboxLost: the sandbox ended before its runner reported an exit.
	ErrSandboxLost = errors.New("the sandbox was lost")
)

// Claim says what sandbox is wanted.
type Claim struct {
	// Language must be one that the sandbox can run.
	Language string
	// Pool names one pool; empty means any pool that offers Language.
	Pool string
	// ID identifies the execution, in logs and on the cluster.
	ID string
	// Event identifies the event that asks for the execution, if one does that
	// may be delivered again: lower-case letters and digits, at most 56. A
	// pool that keeps records of events claims no sandbox for it twice.
	Event string
	// Memory bounds the sandbox, in bytes; 0 leaves it as the pool made it. A
	// pool that cannot bound it returns an *InvalidError.
	Memory int64
	// Deadline is when the sandbox ends at the latest, whatever happens.
	Deadline time.Time
}

// Pool hands out warm sandboxes.
type Pool interface {
	// Claim waits, in order of arrival, for a warm sandbox until ctx ends.
	Claim(ctx context.Context, want Claim) (Sandbox, error)
	// Languages lists what the pools offer now.
	Languages() []execution.Language
	// Status lists the pools and their sandboxes.
	Status() []execution.PoolStatus
	// Changed returns a channel that is closed when Status next changes.
	Changed() <-chan struct{}
	// Ready returns nil when claims can be served.
	Ready() error
}

// Sandbox is one claimed sandbox.
type Sandbox interface {
	// Name is unique among all sandboxes of a pool, past ones included.
	Name() string
	// Pool is the name of the pool that it came from.
	Pool() string
	// Queued says that the claim had to wait until a sandbox was warm.
	Queued() bool
	// Run runs the one program of this sandbox and returns its outcome. What
	// the program writes goes to sink while it runs, in the order in which
	// it arrives. When ctx ends, the program is killed, and the outcome says
	// StatusCancelled if the runner could still report it. An error means
	// that the platform failed, unless it is an *InvalidError; what sink has
	// then is all there is.
	Run(ctx context.Context, run Run, sink Sink) (Outcome, error)
	// Release gives the sandbox back to be destroyed. It does not wait for
	// the destruction and is safe to call at any time, once.
	Release()
}
