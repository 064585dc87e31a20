package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// A pool that could not list or watch its Pods for a while is not ready, and is
// ready again as soon as it can.
func TestNotReadyWhileCachesAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testCache(t)
		pods := &follower{kind: "Pods"}
		c.followers = []*follower{{kind: "SandboxWarmPools"}, pods}
		p, _, _ := testPool(t, c)
		refusal := errors.New("the API server is away")
		ready := func(when string) {
			t.Helper()
			if err := p.Ready(); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		pods.note(t.Context(), nil)
		time.Sleep(time.Hour) // by the bubble's clock
		ready("after a quiet hour")
		pods.note(t.Context(), refusal)
		ready("after one failure")
		time.Sleep(staleAfter)
		pods.note(t.Context(), refusal)
		if err := p.Ready(); !errors.Is(err, pool.ErrClosed) || !errors.Is(err, refusal) || !strings.Contains(err.Error(), "Pods") {
			t.Errorf("while Pods are not followed: %v", err)
		}
		pods.note(t.Context(), nil)
		ready("when they are followed again")
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		pods.note(stopped, stopped.Err())
		time.Sleep(time.Hour)
		ready("after a call that was given up here")
	})
}
