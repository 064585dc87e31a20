// Package pause lets loops wait between their tries.
package pause

import (
	"context"
	"time"
)

// For waits for d, and reports whether ctx goes on. It is false as soon as ctx
// ends.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
