package kube

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

var errNoRoute = errors.New("no route to host")

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	fail := func(b *breaker) { b.failed("node", errNoRoute, now) }
	succeed := func(b *breaker) { b.succeeded("node") }
	offer := func(b *breaker) { b.offerTrial() }
	withdraw := func(b *breaker) { b.withdrawTrial() }
	claim := func(b *breaker) { _, _ = b.admit() }
	end := func(b *breaker) { b.endTrial() }
	for name, test := range map[string]struct {
		history  []func(*breaker)
		cautious bool
		ready    bool
		asTrial  bool
	}{
		"new":                              {nil, false, true, false},
		"one failure":                      {[]func(*breaker){fail}, true, true, false},
		"two failures":                     {[]func(*breaker){fail, fail}, true, true, false},
		"three failures":                   {[]func(*breaker){fail, fail, fail}, true, false, false},
		"never three in a row":             {[]func(*breaker){fail, fail, succeed, fail, fail}, true, true, false},
		"reached again":                    {[]func(*breaker){fail, fail, fail, fail, succeed}, false, true, false},
		"a trial before it opens":          {[]func(*breaker){fail, fail, offer}, true, true, false},
		"a trial is offered":               {[]func(*breaker){fail, fail, fail, offer}, true, true, true},
		"the offer is discarded":           {[]func(*breaker){fail, fail, fail, offer, withdraw}, true, false, false},
		"a trial is running":               {[]func(*breaker){fail, fail, fail, offer, claim}, true, false, false},
		"no second trial beside it":        {[]func(*breaker){fail, fail, fail, offer, claim, offer}, true, false, false},
		"a running trial is not discarded": {[]func(*breaker){fail, fail, fail, offer, claim, withdraw, offer}, true, false, false},
		"the trial has failed":             {[]func(*breaker){fail, fail, fail, offer, claim, fail, end}, true, false, false},
		"the next trial":                   {[]func(*breaker){fail, fail, fail, offer, claim, fail, end, offer}, true, true, true},
		"the trial has succeeded":          {[]func(*breaker){fail, fail, fail, offer, claim, succeed, end}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var b breaker
			for _, happens := range test.history {
				happens(&b)
			}
			if got := b.cautious(); got != test.cautious {
				t.Errorf("cautious: %v, want %v", got, test.cautious)
			}
			err := b.ready()
			if (err == nil) != test.ready {
				t.Errorf("ready: %v, want %v", err, test.ready)
			}
			if err != nil && (!errors.Is(err, pool.ErrClosed) || !errors.Is(err, errNoRoute)) {
				t.Errorf("%v does not say why", err)
			}
			asTrial, err := b.admit()
			if asTrial != test.asTrial || (err == nil) != test.ready {
				t.Errorf("admitted as a trial: %v, %v, want %v", asTrial, err, test.asTrial)
			}
		})
	}
}

// Whatever happens in whatever order, an open breaker admits one claim at a
// time, and a runner that is reached closes it.
func TestBreakerAdmitsOneTrialAtATime(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b breaker
		running := 0
		for step := range 200 {
			switch r.IntN(7) {
			case 0, 1:
				b.failed("node", errNoRoute, time.Unix(0, 0))
			case 2:
				b.offerTrial()
			case 3:
				b.withdrawTrial()
			case 4:
				if asTrial, _ := b.admit(); asTrial {
					running++
				}
			case 5:
				if running > 0 {
					running--
					b.endTrial()
				}
			case 6:
				if r.IntN(4) == 0 {
					b.succeeded("node")
				}
			}
			if running > 1 {
				t.Fatalf("seed %d, step %d: %d trials at once", seed, step, running)
			}
		}
		b.succeeded("node")
		if err := b.ready(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestBreakerAvoidsNodesForAWhile(t *testing.T) {
	var b breaker
	start := time.Unix(0, 0)
	b.failed("a", errNoRoute, start)
	b.failed("b", errNoRoute, start)
	b.failed("", errNoRoute, start)
	b.succeeded("b")
	for node, want := range map[string]bool{"a": true, "b": false, "": false} {
		if got := b.avoids(node, start.Add(avoidFor-1)); got != want {
			t.Errorf("node %q is avoided: %v, want %v", node, got, want)
		}
	}
	if b.avoids("a", start.Add(avoidFor)) {
		t.Error("node a is still avoided")
	}
}
