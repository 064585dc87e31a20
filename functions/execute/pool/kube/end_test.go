package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The end of an execution waits for the others, but not for long.
func TestYieldToActive(t *testing.T) {
	for name, test := range map[string]struct {
		others int
		// leaveAfter is when the others end.
		leaveAfter time.Duration
		want       time.Duration
	}{
		"alone":                 {0, 0, 0},
		"beside a quick one":    {1, 100 * time.Millisecond, 100 * time.Millisecond},
		"beside several":        {3, 200 * time.Millisecond, 200 * time.Millisecond},
		"beside one that lasts": {1, time.Hour, maxReleaseDelay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Pool{}
				p.enter()
				for range test.others {
					p.enter()
					time.AfterFunc(test.leaveAfter, p.leave)
				}
				p.leave()
				began := time.Now()
				p.yieldToActive(t.Context())
				if took := time.Since(began); took != test.want {
					t.Errorf("waited %s, want %s", took, test.want)
				}
				time.Sleep(test.leaveAfter) // so that no timer is left
			})
		})
	}
}

func TestYieldToActiveEndsWithThePool(t *testing.T) {
	p := &Pool{}
	p.enter()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if p.yieldToActive(ctx); time.Since(began) >= maxReleaseDelay {
		t.Error("it waited although the pool had been closed")
	}
}
