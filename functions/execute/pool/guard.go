package pool

import (
	"context"
	"errors"
	"sync"
)

// Errors of sandboxes of a guarded pool, for a caller that breaks the contract.
var (
	// ErrUsed: the sandbox has been given its program before.
	ErrUsed = errors.New("the sandbox has been used")
	// ErrReleased: the sandbox has been released.
	ErrReleased = errors.New("the sandbox has been released")
)

// Guard returns p with sandboxes that hold their callers to the contract,
// whatever p does: a sandbox is given one program, none after its release, and
// is released once. Further releases do nothing.
func Guard(p Pool) Pool { return guard{p} }

type guard struct{ Pool }

// Claim implements Pool.
func (g guard) Claim(ctx context.Context, want Claim) (Sandbox, error) {
	s, err := g.Pool.Claim(ctx, want)
	if err != nil {
		return nil, err
	}
	return &guarded{Sandbox: s}, nil
}

type guarded struct {
	Sandbox

	mu             sync.Mutex
	used, released bool
}

// Run implements Sandbox.
func (g *guarded) Run(ctx context.Context, run Run, sink Sink) (Outcome, error) {
	if err := g.use(); err != nil {
		return Outcome{}, err
	}
	return g.Sandbox.Run(ctx, run, sink)
}

func (g *guarded) use() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.released:
		return ErrReleased
	case g.used:
		return ErrUsed
	}
	g.used = true
	return nil
}

// Release implements Sandbox.
func (g *guarded) Release() {
	g.mu.Lock()
	first := !g.released
	g.released = true
	g.mu.Unlock()
	if first {
		g.Sandbox.Release()
	}
}
