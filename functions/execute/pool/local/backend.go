package local

import (
	"context"
	"errors"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// Backend makes sandboxes: containers of an OCI runtime, virtual machines. Its
// methods may be called at once from several goroutines.
type Backend interface {
	// Create makes a sandbox and returns when its runner is ready. An instance
	// that comes with an error is what is left of the attempt: like every
	// other, it must be destroyed.
	Create(ctx context.Context, p PoolConfig, name string) (Instance, error)
	// Version is the version of a language in the sandboxes, "" if unknown.
	Version(language string) string
}

// SessionBackend is a Backend all of whose instances are Keepers.
type SessionBackend interface {
	Backend
	// KeepsSessions reports whether they are.
	KeepsSessions() bool
}

// Keeper is an Instance that can serve a session in place of one run.
type Keeper interface {
	Instance
	// Keep opens the session that want describes and info is to name. It is
	// called once, and Run not at all then. The runner ends the sandbox by itself
	// some time after the session should have ended.
	Keep(ctx context.Context, info pool.SessionInfo, want pool.SessionClaim) (Kept, error)
	// Prioritize undoes Deprioritize.
	Prioritize() error
}

// Kept is the session in a Keeper. Its methods must return soon after their
// context's end.
type Kept interface {
	pool.Session
	// Done is closed when the sandbox has ended.
	Done() <-chan struct{}
}

// ErrNoCapacity is wrapped by errors of Create that say nothing about the pool:
// the backend has as many sandboxes as it can have.
var ErrNoCapacity = errors.New("no capacity for another sandbox")

// Instance is one sandbox of a backend. But for Destroy, its methods are
// for an instance that Create returned without an error.
type Instance interface {
	// Run is pool.Sandbox's. The error wraps pool.ErrSandboxLost if the
	// connection to the runner ended before the runner reported.
	Run(ctx context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error)
	// Alive reports whether the runner waits for its run. It is not called
	// once Run has been.
	Alive() bool
	// SetMemory bounds the sandbox's memory, in bytes.
	SetMemory(limit int64) error
	// OOMKills is how many processes the kernel has killed in the sandbox for
	// memory.
	OOMKills() int64
	// Deprioritize lets sandboxes that have run for less long come first.
	Deprioritize() error
	// EndProgram kills every process but the runner, until there is none, and
	// reports whether there were any. It needs nothing of what is inside. A
	// backend that cannot tell the runner from the program kills both.
	EndProgram(ctx context.Context) (ended bool, err error)
	// Destroy kills every process at once, waits until none is left and removes
	// the sandbox. Only then may what it had be given to another one. It returns
	// soon after ctx ends. After an error it can be called again, and after
	// success it does nothing.
	Destroy(ctx context.Context) error
}
