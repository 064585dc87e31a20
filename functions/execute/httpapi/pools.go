package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// eventPools is the event of a GET /v1/pools stream.
const eventPools = "pools"

const (
	// poolsInterval is the shortest time between two events of a stream;
	// changes in between are in the later one.
	poolsInterval = 250 * time.Millisecond
	// poolsSandboxes is how many sandboxes of a pool each event lists.
	poolsSandboxes = 50
)

// getPools answers GET /v1/pools: the state of the pools, or, as a stream, each
// state that they come to, with the first of their sandboxes.
func (a *API) getPools(c *fiber.Ctx) error {
	if !server.WantsEvents(c) {
		c.Set(fiber.HeaderCacheControl, "no-store")
		return c.JSON(poolList(a.pools.Status()))
	}
	return server.Stream(c, func(ctx context.Context, events *server.SSE) error {
		var sent []byte
		for {
			changed := a.pools.Changed()
			state, err := json.Marshal(poolList(briefly(a.pools.Status())))
			if err != nil {
				return fmt.Errorf("encode the state of the pools: %w", err)
			}
			if !bytes.Equal(state, sent) {
				if err := events.Send(eventPools, json.RawMessage(state)); err != nil {
					return err
				}
				sent = state
			}
			pause := time.NewTimer(poolsInterval)
			select {
			case <-changed:
				<-pause.C
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-server.Draining(ctx):
				return nil
			}
		}
	})
}

func poolList(pools []execution.PoolStatus) fiber.Map {
	return fiber.Map{"pools": append([]execution.PoolStatus{}, pools...)}
}

// briefly leaves out the sandboxes beyond the first of each pool, and counts
// them.
func briefly(pools []execution.PoolStatus) []execution.PoolStatus {
	pools = slices.Clone(pools)
	for i, p := range pools {
		if more := len(p.Sandboxes) - poolsSandboxes; more > 0 {
			pools[i].Sandboxes, pools[i].SandboxesOmitted = p.Sandboxes[:poolsSandboxes:poolsSandboxes], more
		}
	}
	return pools
}
