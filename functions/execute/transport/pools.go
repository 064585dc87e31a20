package transport

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// eventPools is the event of a GET /v1/pools stream.
const eventPools = "pools"

// poolsInterval is the shortest time between two events of a stream; changes
// in between are in the later one.
const poolsInterval = 100 * time.Millisecond

// pools answers GET /v1/pools: the state of the pools, or, as a stream, each
// state that they come to.
func (t *Transport) pools(c *fiber.Ctx) error {
	if !server.WantsEvents(c) {
		c.Set(fiber.HeaderCacheControl, "no-store")
		return c.JSON(t.poolState())
	}
	return server.Stream(c, func(ctx context.Context, events *server.SSE) error {
		for {
			changed := t.pool.Changed()
			if err := events.Send(eventPools, t.poolState()); err != nil {
				return err
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

func (t *Transport) poolState() fiber.Map {
	return fiber.Map{"pools": append([]execution.PoolStatus{}, t.pool.Status()...)}
}
