package pool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestP1 lets 100 claims of 4 claimants race for 2 sandboxes.
func TestP1(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	small := sp.Pool("code", "python", 2)
	small.Spec.MaxSandboxes = ptr.To[int32](2)
	sp.Create(sp.Template("python", node), small)
	sp.Controller()
	var claimants []*kube.Pool
	for range 4 {
		claimants = append(claimants, sp.Claimant())
	}
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 })

	var mu sync.Mutex
	owners, refused := map[string]bool{}, 0
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			s, err := claimants[i%4].Claim(ctx, pool.Claim{Language: "python", Deadline: time.Now().Add(time.Minute)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, pool.ErrNoSandbox):
				refused++
			case err != nil:
				t.Error(err)
			case owners[s.Name()]:
				t.Errorf("I2: sandbox %s was given twice", s.Name())
			default:
				owners[s.Name()] = true
				s.Release()
			}
			if n := len(sp.Pods("")); n > 2 {
				t.Errorf("I9: %d sandboxes exist and the limit is 2", n)
			}
		})
	}
	wg.Wait()
	if len(owners) < 2 || len(owners)+refused != 100 {
		t.Errorf("%d claims served and %d refused", len(owners), refused)
	}
	settled(sp, 2)
	noFaults(t, node)
}

// TestOrder: claims that wait are served in the order of their creation.
func TestOrder(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	one := sp.Pool("code", "python", 0)
	one.Spec.MaxSandboxes = ptr.To[int32](1)
	sp.Create(sp.Template("python", node), one)
	const n = 5
	for i := range n {
		// Names that sort the other way round: a second holds several claims.
		sp.Create(&v1alpha1.SandboxClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", n-i)},
			Spec:       v1alpha1.SandboxClaimSpec{WarmPoolRef: v1alpha1.Reference{Name: "code"}},
		})
	}
	sp.Controller()
	for i := range n {
		name := fmt.Sprintf("claim-%d", n-i)
		sp.Eventually(name+" is bound", func() bool { c := sp.Claim(name); return c.Status.GetCondition(v1alpha1.ConditionReady).IsTrue() })
		for j := i + 1; j < n; j++ {
			if c := sp.Claim(fmt.Sprintf("claim-%d", n-j)); c.Status.Sandbox != nil {
				t.Fatalf("%s was served before %s", c.Name, name)
			}
		}
		sp.EndClaim(name)
	}
	settled(sp, 0)
}

// TestP4 scales a pool 10 → 0 → 10 under claimed sandboxes.
func TestP4(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 10))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("ten sandboxes are warm", func() bool { return sp.Warm() == 10 && p.Status()[0].Warm == 10 })
	var held []pool.Sandbox
	for range 3 {
		held = append(held, mustClaim(t, p))
	}
	sp.Scale("code", 0)
	sp.Eventually("only the claimed ones are left", func() bool { return len(sp.Pods("")) == 3 && len(sp.Pods(v1alpha1.StateClaimed)) == 3 })
	sp.Scale("code", 10)
	sp.Eventually("the pool is full again", func() bool { return sp.Warm() == 10 })
	for _, s := range held {
		use(t, s)
		s.Release()
	}
	settled(sp, 10)
	noFaults(t, node)
}

// TestPoolDeleted: the end of a pool is not the end of a running program.
func TestPoolDeleted(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 && p.Status()[0].Warm == 2 })
	s := mustClaim(t, p)
	if err := sp.Preheat.SandboxV1alpha1().SandboxWarmPools(sp.Namespace).Delete(t.Context(), "code", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	sp.Eventually("only the claimed one is left", func() bool { return len(sp.Pods("")) == 1 })
	use(t, s)
	s.Release()
	settled(sp, 0)
	noFaults(t, node)
}
