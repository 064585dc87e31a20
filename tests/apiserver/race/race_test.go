// Package race_test lets claimants race for the sandboxes of pools that are
// scaled, rolled out and kept by a controller that is killed again and again
// and learns late of claims. Half of the claims are of events whose names are
// used again at once. Then it asks the API server's own history whether a
// sandbox was ever claimed twice, destroyed under its claim, or left behind.
package race_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

var (
	claimsWanted = flag.Int64("claims", 20000, "how many claims race")
	shared       *stage.Stage
)

const (
	claimants = 8
	// perClaimant is how many executions each claimant serves at once.
	perClaimant = 2
	poolCount   = 2
	poolSize    = 24
)

func TestMain(m *testing.M) {
	flag.Parse()
	stage.Main(m, func(s *stage.Stage) { shared = s })
}

// race is one race.
type race struct {
	*stage.Space
	pools  []*kube.Pool
	events events
	claims atomic.Int64
	missed atomic.Int64

	mu     sync.Mutex
	owners map[types.UID]string
	// doubles are sandboxes of two owners, errors is what else went wrong,
	// as it may on a busy machine.
	doubles, errors []string
}

// TestRace asserts I1, I2, I3 and I4.
func TestRace(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	r := &race{Space: sp, owners: map[types.UID]string{}}
	herd := r.newHerd()
	history := follow(sp, herd.see)
	sp.Create(sp.Template("python", node))
	for i := range poolCount {
		sp.Create(sp.Pool(poolName(i), "python", poolSize))
	}
	for range claimants {
		r.pools = append(r.pools, sp.ClaimantThatRemembers(time.Second))
	}
	start := time.Now()
	stop := r.disturb()
	r.run(t.Context(), herd)
	stop()
	herd.stop()
	took := time.Since(start)

	leaked := r.leftovers()
	for _, p := range r.pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	v := history.verdict()
	doubles := slices.Concat(r.doubles, v.doubles, node.Faults())
	claims := r.claims.Load() + herd.claims.Load()
	fmt.Printf("claims=%d double=%d destroyed=%d leaked=%d won=%d seconds=%.0f\n",
		claims, len(doubles), len(v.destroyed), len(leaked), v.claimed, took.Seconds())
	t.Logf("%d executions, %d of them of events, %d claims that waited in vain, %d claims of the herd, %d claims by a name that was used before, %.0f claims per second",
		r.claims.Load(), r.events.claims.Load(), r.missed.Load(), herd.claims.Load(), v.again, float64(claims)/took.Seconds())
	for _, e := range r.errors[:min(len(r.errors), 10)] {
		t.Logf("of %d errors: %s", len(r.errors), e)
	}
	for what, list := range map[string][]string{"double": doubles, "destroyed": v.destroyed, "leaked": leaked} {
		for _, f := range list[:min(len(list), 20)] {
			t.Errorf("%s: %s", what, f)
		}
	}
	if v.claimed < int(r.claims.Load()) {
		t.Errorf("the history shows %d claimed sandboxes for %d claims", v.claimed, r.claims.Load())
	}
	if v.again < int(r.events.claims.Load())/2 {
		t.Errorf("names came again %d times in %d claims of events", v.again, r.events.claims.Load())
	}
}

func poolName(i int) string { return fmt.Sprintf("pool-%d", i) }

// run makes the claims.
func (r *race) run(ctx context.Context, h *herd) {
	var wg sync.WaitGroup
	for i, p := range r.pools {
		for range perClaimant {
			wg.Go(func() {
				for n := 0; r.claims.Load()+h.claims.Load() < *claimsWanted && ctx.Err() == nil; n++ {
					if n%2 == 0 {
						r.execute(ctx, p, pool.Claim{ID: fmt.Sprint(i)}, func() func() { return func() {} })
					} else {
						r.events.deliver(ctx, r, p, fmt.Sprint(i))
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			r.TB.Logf("%d executions and %d claims of the herd so far", r.claims.Load(), h.claims.Load())
		}
	}
}

// execute makes one claim and uses it. It reports whether there was a sandbox.
// begin is called when there is one, and what it returns before its release.
func (r *race) execute(ctx context.Context, p *kube.Pool, want pool.Claim, begin func() (end func())) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	want.Language, want.Deadline = "python", time.Now().Add(2*time.Minute)
	s, err := p.Claim(ctx, want)
	switch {
	case errors.Is(err, pool.ErrNoSandbox):
		r.missed.Add(1)
		return false
	case errors.Is(err, pool.ErrDelivered):
		return false
	case err != nil:
		r.failed("claim: %v", err)
		return false
	}
	defer s.Release()
	defer begin()()
	r.claims.Add(1)
	var out answer
	if _, err := s.Run(ctx, fakenode.Program(), &out); err != nil {
		// The history still has this claim.
		r.failed("run in %s: %v", s.Name(), err)
	} else {
		r.won(s.Name(), types.UID(out.uid), want.ID)
		if string(out.name) != s.Name() {
			r.double("claimant %s has sandbox %s and %q ran its program", want.ID, s.Name(), out.name)
		}
	}
	// Some hold their sandbox for a while, more so those of events.
	if rand.IntN(20) == 0 || want.Event != "" && rand.IntN(4) == 0 {
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
	}
	return true
}

// answer is what a sandbox says of itself: its name and its UID.
type answer struct {
	name, uid []byte
}

// Started, Result and Artifact implement pool.Sink.
func (*answer) Started() {}

func (*answer) Result(execution.RichResult) {}

func (*answer) Artifact(execution.Artifact) {}

// Output implements pool.Sink.
func (a *answer) Output(stream execution.Stream, data []byte, _ int64) {
	if stream == execution.Stderr {
		a.uid = append(a.uid, data...)
		return
	}
	a.name = append(a.name, data...)
}

// won notes that a claimant believes to have a sandbox. Its UID tells it from
// all others that there ever were; a name may come again.
func (r *race) won(name string, uid types.UID, claimant string) {
	r.mu.Lock()
	other, taken := r.owners[uid]
	r.owners[uid] = claimant
	r.mu.Unlock()
	if taken {
		r.double("sandbox %s (%s) was given to %s and to %s", name, uid, other, claimant)
	}
}

func (r *race) double(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubles = append(r.doubles, fmt.Sprintf(format, args...))
}

func (r *race) failed(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
