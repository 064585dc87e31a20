package gvisor

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// BenchmarkBesideRunc measures both runtimes in turns: print(1) over HTTP with a
// warm sandbox, until the pool is whole again after it, and 10,000 system calls.
func BenchmarkBesideRunc(b *testing.B) {
	sides := []*side{{name: "runc"}, {name: "runsc"}}
	for _, s := range sides {
		s.product = product.Start(b, "PREHEAT_RUNTIME="+s.name, "PREHEAT_POOL_SIZE=2", "PREHEAT_JAVASCRIPT_POOL_SIZE=0")
	}
	b.ResetTimer()
	for range b.N {
		for _, s := range sides {
			s.measure(b)
		}
	}
	for _, s := range sides {
		for what, took := range map[string][]time.Duration{"print": s.print, "refill": s.refill, "calls": s.calls} {
			slices.Sort(took)
			for _, p := range []int{50, 90} {
				b.ReportMetric(float64(took[len(took)*p/100].Microseconds())/1000, fmt.Sprintf("%s-%s-p%d-ms", s.name, what, p))
			}
		}
	}
}

type side struct {
	name                 string
	product              *product.Product
	print, refill, calls []time.Duration
}

func (s *side) measure(b *testing.B) {
	s.print = append(s.print, s.run(b, "print(1)", "1\n"))
	began := time.Now()
	s.awaitWarm(b)
	s.refill = append(s.refill, time.Since(began))
	s.calls = append(s.calls, s.run(b, "import os\nfor _ in range(10_000): os.getppid()\nprint(1)", "1\n"))
	s.awaitWarm(b)
}

func (s *side) run(b *testing.B, code, stdout string) time.Duration {
	began := time.Now()
	r := s.product.Python(b, code)
	took := time.Since(began)
	product.Ended(b, r, execution.StatusSucceeded, 0, "")
	product.Equal(b, "stdout", r.Stdout, stdout)
	return took
}

func (s *side) awaitWarm(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for {
		var pools struct{ Pools []execution.PoolStatus }
		s.product.Get(b, "/v1/pools", &pools)
		if p := pools.Pools[0]; p.Warm == 2 && p.Claimed == 0 {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("the pool of %s does not become whole", s.name)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
