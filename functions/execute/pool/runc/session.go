package runc

import (
	"context"
	"errors"
	"fmt"

	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/local"
	"github.com/preheat-dev/preheat/functions/execute/pool/remote"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

var (
	_ local.SessionBackend = (*Backend)(nil)
	_ local.Keeper         = (*container)(nil)
)

// KeepsSessions implements local.SessionBackend.
func (b *Backend) KeepsSessions() bool { return true }

// Keep implements local.Keeper.
func (c *container) Keep(ctx context.Context, info pool.SessionInfo, want pool.SessionClaim) (local.Kept, error) {
	if err := remote.Open(ctx, c.wire, want); err != nil {
		var failure *wire.Failure
		var invalid *pool.InvalidError
		if errors.As(err, &failure) || errors.As(err, &invalid) || ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", pool.ErrSandboxLost, err)
	}
	mux, err := remote.Multiplex(c.conn, "")
	if err != nil {
		return nil, err
	}
	return kept{remote.NewSession(info, mux), mux}, nil
}

// kept is a session whose operations share its container's connection.
type kept struct {
	*remote.Session
	mux *remote.Mux
}

// Done implements local.Kept.
func (k kept) Done() <-chan struct{} { return k.mux.Done() }

// Prioritize implements local.Keeper.
func (c *container) Prioritize() error { return c.cgroup.setShares(sharesWarm) }
