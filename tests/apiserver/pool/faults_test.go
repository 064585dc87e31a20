package pool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/faults"
)

// stale is how long a watch that was cut takes to come back.
const stale = 500 * time.Millisecond

// TestP8 lets every third read or write of the controller and of execute go
// wrong in one way, cuts their watches again and again and lets their caches
// grow stale meanwhile. Then it asks whether a sandbox was used twice or left
// behind, and how often the controller tried.
func TestP8(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"409": {Status: http.StatusConflict}, "422": {Status: http.StatusUnprocessableEntity},
		"429": {Status: http.StatusTooManyRequests}, "500": {Status: http.StatusInternalServerError},
		"403": {Status: http.StatusForbidden}, "503": {Status: http.StatusServiceUnavailable},
		"lost answers": {Lose: true}, "slow answers": {Delay: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := shared.Space(t)
			node := sp.Node(fakenode.Options{})
			sp.Create(sp.Template("python", node), sp.Pool("code", "python", 4))
			ofController, _ := proxied(sp)
			ofExecute := faults.New()
			p := sp.Claimant(func(c *rest.Config) { ofExecute.Wrap(c) })
			sp.Eventually("four sandboxes are warm", func() bool { return sp.Warm() == 4 && p.Status()[0].Warm == 4 })

			for _, in := range []*faults.Injector{ofController, ofExecute} {
				in.Set(func(c faults.Call) faults.Fault {
					switch {
					case c.Verb == "WATCH":
						return faults.Fault{Delay: stale}
					case c.Resource != "leases" && c.Verb != "LIST" && rand.IntN(3) == 0:
						return fault
					}
					return faults.Fault{}
				})
			}
			before := ofController.Total()
			start := time.Now()
			served := abuse(t, p, ofController, ofExecute, 6*time.Second)
			took := time.Since(start)
			// Each execution is worth a handful of calls. The rest is retries,
			// which have to pause.
			if calls := ofController.Total() - before; calls > served*30+int(took.Seconds())*60 {
				t.Errorf("%d calls of the controller for %d executions in %s: a hot loop", calls, served, took)
			}
			ofController.Clear()
			ofExecute.Clear()
			sp.Scale("code", 3)
			settled(sp, 3)
			noFaults(t, node)
		})
	}
}

// abuse executes with 4 callers for some time and cuts the watches meanwhile.
// It returns how many executions there were.
func abuse(t *testing.T, p pool.Pool, a, b *faults.Injector, long time.Duration) (served int) {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var mu sync.Mutex
	owners := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				one(t, ctx, p, func(s pool.Sandbox) {
					mu.Lock()
					defer mu.Unlock()
					if owners[s.Name()] {
						t.Errorf("I2: sandbox %s was given twice", s.Name())
					}
					owners[s.Name()] = true
				}, fmt.Sprint(i))
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(time.Second)
			a.CutWatches()
			b.CutWatches()
		}
	})
	wg.Wait()
	return len(owners)
}

// one makes one execution, if it gets a sandbox: here refusals are no news.
func one(t *testing.T, ctx context.Context, p pool.Pool, won func(pool.Sandbox), id string) {
	limit, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := p.Claim(limit, pool.Claim{Language: "python", ID: id, Deadline: time.Now().Add(3 * time.Second)})
	if err != nil {
		time.Sleep(20 * time.Millisecond)
		return
	}
	defer s.Release()
	won(s)
	var out fakenode.Output
	if _, err := s.Run(t.Context(), fakenode.Program(), &out); err == nil && string(out) != s.Name() {
		t.Errorf("sandbox %q ran the program of %s", out, s.Name())
	}
}

// TestConflictsOfAClaim: a write of a claim that met a conflict is tried again,
// also when nothing else happens to the claim.
func TestConflictsOfAClaim(t *testing.T) {
	for _, write := range []faults.Call{
		{Verb: http.MethodDelete, Resource: "sandboxclaims"}, {Verb: http.MethodPut, Resource: "sandboxclaims/status"},
	} {
		t.Run(write.Verb, func(t *testing.T) {
			t.Parallel()
			sp := shared.Space(t)
			in, _ := proxied(sp)
			in.Set(func(c faults.Call) faults.Fault {
				if c == write {
					return faults.Fault{Status: http.StatusConflict}
				}
				return faults.Fault{}
			})
			node := sp.Node(fakenode.Options{})
			sp.Create(sp.Template("python", node), sp.Pool("code", "python", 0), &v1alpha1.SandboxClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "claim"},
				Spec: v1alpha1.SandboxClaimSpec{
					WarmPoolRef: v1alpha1.Reference{Name: "code"},
					Lifecycle:   v1alpha1.Lifecycle{ShutdownTime: &metav1.Time{Time: time.Now()}, TTLSecondsAfterFinished: ptr.To[int32](0)},
				},
			})
			sp.Eventually("the write was refused", func() bool { return in.Count(write) > 0 })
			in.Clear()
			settled(sp, 0)
		})
	}
}
