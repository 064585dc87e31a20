package pool_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// want is a claim for a sandbox with half a minute to live.
func want() pool.Claim {
	return pool.Claim{Language: "python", ID: "test", Deadline: time.Now().Add(30 * time.Second)}
}

// claim claims a sandbox within a time.
func claim(t *testing.T, p *kube.Pool, limit time.Duration) (pool.Sandbox, error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return p.Claim(ctx, want())
}

func mustClaim(t *testing.T, p *kube.Pool) pool.Sandbox {
	t.Helper()
	s, err := claim(t, p, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// use runs something in a sandbox and checks that it was this one.
func use(t *testing.T, s pool.Sandbox) {
	t.Helper()
	var out fakenode.Output
	if _, err := s.Run(t.Context(), fakenode.Program(), &out); err != nil {
		t.Errorf("run in %s: %v", s.Name(), err)
	} else if string(out) != s.Name() {
		t.Errorf("sandbox %q ran the program, want %q", out, s.Name())
	}
}

func noFaults(t *testing.T, n *fakenode.Node) {
	t.Helper()
	for _, f := range n.Faults() {
		t.Error(f)
	}
}

// settled waits until n sandboxes are warm and nothing else is there.
func settled(sp *stage.Space, n int) {
	sp.TB.Helper()
	sp.Eventually("the pool has settled", func() bool { return len(sp.Pods("")) == n && sp.Warm() == n && len(sp.Claims()) == 0 })
}

// TestExecution follows one execution from the warm pool to the refill.
func TestExecution(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 && p.Status()[0].Warm == 2 })

	s := mustClaim(t, p)
	use(t, s)
	claimed := sp.Pods(v1alpha1.StateClaimed)
	if len(claimed) != 1 || claimed[0].Name != s.Name() {
		t.Fatalf("claimed are %v", claimed)
	}
	if d := claimed[0].Spec.ActiveDeadlineSeconds; d != nil {
		t.Errorf("the quick program's Pod has a deadline of %d s", *d)
	}
	if len(claimed[0].OwnerReferences) != 0 {
		t.Error("a claimed sandbox still belongs to its pool")
	}
	s.Release()
	settled(sp, 2)
	noFaults(t, node)
}

// TestDeadline: the node learns how long a sandbox may live when its program
// goes on for a while.
func TestDeadline(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 1))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("a sandbox is warm", func() bool { return sp.Warm() == 1 && len(p.Status()) == 1 && p.Status()[0].Warm == 1 })
	s := mustClaim(t, p)
	var ended sync.WaitGroup
	ended.Go(func() {
		run := fakenode.Program()
		run.Code = []byte("5s")
		if _, err := s.Run(t.Context(), run, new(fakenode.Output)); err != nil {
			t.Errorf("run in %s: %v", s.Name(), err)
		}
	})
	sp.Eventually("the Pod has a deadline of its own", func() bool {
		claimed := sp.Pods(v1alpha1.StateClaimed)
		if len(claimed) != 1 || claimed[0].Spec.ActiveDeadlineSeconds == nil {
			return false
		}
		if d := *claimed[0].Spec.ActiveDeadlineSeconds; d < 30 || d > 120 {
			t.Errorf("it is %d s", d)
		}
		return true
	})
	ended.Wait()
	s.Release()
	settled(sp, 1)
	noFaults(t, node)
}

// TestWhatIsOffered: languages and states come from the cluster, as they change.
func TestWhatIsOffered(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Controller()
	p := sp.Claimant()
	if _, err := claim(t, p, time.Second); !errors.Is(err, pool.ErrUnknownLanguage) {
		t.Errorf("without a pool: %v", err)
	}
	js := sp.Template("js", node)
	js.Spec.Languages = []v1alpha1.Language{{Name: "javascript", Version: "20"}}
	sp.Create(sp.Template("python", node), js, sp.Pool("a", "python", 1), sp.Pool("b", "js", 1))
	sp.Eventually("both pools are warm", func() bool {
		return sp.Warm() == 2 && len(p.Status()) == 2 && p.Status()[0].Warm == 1 && p.Status()[1].Warm == 1
	})
	var names []string
	for _, l := range p.Languages() {
		names = append(names, l.Name)
	}
	if len(names) != 3 || names[0] != "bash" || names[1] != "javascript" || names[2] != "python" {
		t.Errorf("languages %v", names)
	}
	for _, test := range []struct {
		want pool.Claim
		pool string
		err  error
	}{
		{pool.Claim{Language: "python"}, "a", nil},
		// An alias has become a name before.
		{pool.Claim{Language: "py"}, "", pool.ErrUnknownLanguage},
		{pool.Claim{Language: "javascript"}, "b", nil},
		{pool.Claim{Language: "python", Pool: "b"}, "", pool.ErrUnknownLanguage},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		test.want.Deadline = time.Now().Add(time.Minute)
		s, err := p.Claim(ctx, test.want)
		cancel()
		if !errors.Is(err, test.err) {
			t.Errorf("%+v: err = %v, want %v", test.want, err, test.err)
		}
		if s == nil {
			continue
		}
		if s.Pool() != test.pool {
			t.Errorf("%+v is from pool %s, want %s", test.want, s.Pool(), test.pool)
		}
		s.Release()
	}
	settled(sp, 2)
}

// TestControllerDown asserts I12.
func TestControllerDown(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 3))
	c := sp.Controller()
	p := sp.Claimant()
	sp.Eventually("three sandboxes are warm", func() bool { return sp.Warm() == 3 && p.Status()[0].Warm == 3 })
	c.Kill()
	for range 3 {
		s := mustClaim(t, p)
		use(t, s)
		s.Release()
	}
	if _, err := claim(t, p, 500*time.Millisecond); !errors.Is(err, pool.ErrNoSandbox) {
		t.Fatalf("with an empty pool and no controller: %v", err)
	}
	sp.Controller()
	s := mustClaim(t, p)
	use(t, s)
	s.Release()
	settled(sp, 3)
	noFaults(t, node)
}
