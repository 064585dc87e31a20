package pool_test

import (
	"testing"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// TestAnOpenNetworkIsNoticed: where nothing enforces policies, as between the
// processes of this test, the template says so and is ready all the same.
func TestAnOpenNetworkIsNoticed(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 1))
	sp.Controller()
	sp.Eventually("nothing is known before a sandbox is warm", func() bool {
		c := condition(sp, "python", v1alpha1.ConditionNetworkIsolated)
		return c != nil && c.IsUnknown() && c.Reason == v1alpha1.ReasonUntried
	})
	sp.Eventually("the network is found to be open", func() bool {
		c := condition(sp, "python", v1alpha1.ConditionNetworkIsolated)
		return c.IsFalse() && c.Reason == v1alpha1.ReasonNotEnforced
	})
	if !condition(sp, "python", v1alpha1.ConditionReady).IsTrue() {
		t.Error("the template is not ready")
	}
	p := sp.Claimant()
	useOne(t, p)
	noFaults(t, node)
}
