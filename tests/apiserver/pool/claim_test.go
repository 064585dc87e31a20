package pool_test

import (
	"context"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/runner/wire"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// output is what a run wrote.
type output struct{ text []byte }

func (o *output) Started()                                   {}
func (o *output) Output(_ wire.Stream, data []byte, _ int64) { o.text = append(o.text, data...) }
func (o *output) Result(execution.RichResult)                {}
func (o *output) Artifact(execution.Artifact)                {}

func want() pool.Claim {
	return pool.Claim{Language: "python", ID: "test", Deadline: time.Now().Add(30 * time.Second)}
}

// TestExecution follows one execution from the warm pool to the refill.
func TestExecution(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 && p.Status()[0].Warm == 2 })

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := p.Claim(ctx, want())
	if err != nil {
		t.Fatal(err)
	}
	var out output
	if _, err := s.Run(ctx, wire.Run{Language: "python"}, &out); err != nil {
		t.Fatal(err)
	}
	if string(out.text) != s.Name() {
		t.Errorf("sandbox %q ran the program, want %q", out.text, s.Name())
	}
	claimed := sp.Pods(v1alpha1.StateClaimed)
	if len(claimed) != 1 || claimed[0].Name != s.Name() {
		t.Fatalf("claimed are %v", claimed)
	}
	if d := claimed[0].Spec.ActiveDeadlineSeconds; d == nil || *d < 30 || *d > 120 {
		t.Errorf("the Pod's own deadline is %v", d)
	}
	if len(claimed[0].OwnerReferences) != 0 {
		t.Error("a claimed sandbox still belongs to its pool")
	}
	s.Release()
	sp.Eventually("the sandbox is gone and replaced", func() bool {
		return len(sp.Pods(v1alpha1.StateClaimed)) == 0 && sp.Warm() == 2
	})
	if f := node.Faults(); len(f) > 0 {
		t.Error(f)
	}
}
