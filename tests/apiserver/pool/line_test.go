package pool_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// TestLine: however many wait, the cluster has no more claims of them than the
// pool has sandboxes. They are served in the order in which they came, and
// requests before the events that have no claim yet.
func TestLine(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	small := sp.Pool("code", "python", 2)
	small.Spec.MaxSandboxes = ptr.To[int32](2)
	sp.Create(sp.Template("python", node), small)
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 && p.Status()[0].Warm == 2 })
	held := []pool.Sandbox{mustClaim(t, p), mustClaim(t, p)}

	var mu sync.Mutex
	var served []string
	var all sync.WaitGroup
	var want []string
	const events = 12
	arrive := func(i int, name, event string) {
		w := pool.Claim{Language: "python", ID: name, Event: event, Deadline: time.Now().Add(2 * time.Minute)}
		all.Go(func() {
			s, err := p.Claim(t.Context(), w)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			mu.Lock()
			served = append(served, name)
			mu.Unlock()
			use(t, s)
			s.Release()
			if event != "" {
				if err := p.Finish(t.Context(), event, []byte("done")); err != nil {
					t.Error(err)
				}
			}
		})
		sp.Eventually(name+" is in line", func() bool { return p.Status()[0].Waiting == i+1 })
	}
	for i := range events {
		arrive(i, fmt.Sprintf("event-%d", i), fmt.Sprintf("line%d", i))
		want = append(want, fmt.Sprintf("event-%d", i))
	}
	arrive(events, "request", "")
	want = slices.Insert(want, 2, "request")
	sp.Eventually("the first two have their claims", func() bool { return len(sp.Claims()) == 4 })
	time.Sleep(300 * time.Millisecond)
	if n := len(sp.Claims()); n != 4 {
		t.Errorf("%d claims for 2 in use and %d that wait, want 4", n, events+1)
	}
	held[0].Release() // one at a time, so that the order can be seen
	all.Wait()
	if !slices.Equal(served, want) {
		t.Errorf("served\n%v, want\n%v", served, want)
	}
	held[1].Release()
	noFaults(t, node)
}
