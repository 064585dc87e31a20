package httpapi

import (
	"fmt"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// The state of a large pool is a few kilobytes in a stream.
func TestBriefly(t *testing.T) {
	large := make([]execution.SandboxStatus, 5000)
	for i := range large {
		large[i].Name = fmt.Sprint("sandbox-", i)
	}
	all := []execution.PoolStatus{{Name: "large", Warm: 5000, Sandboxes: large}, {Name: "small", Sandboxes: large[:poolsSandboxes]}}
	brief := briefly(all)
	if p := brief[0]; len(p.Sandboxes) != poolsSandboxes || p.SandboxesOmitted != 5000-poolsSandboxes || p.Warm != 5000 {
		t.Errorf("%d listed and %d omitted", len(p.Sandboxes), p.SandboxesOmitted)
	}
	if p := brief[1]; len(p.Sandboxes) != poolsSandboxes || p.SandboxesOmitted != 0 {
		t.Errorf("%d listed and %d omitted", len(p.Sandboxes), p.SandboxesOmitted)
	}
	if len(all[0].Sandboxes) != 5000 || all[0].SandboxesOmitted != 0 {
		t.Error("the pool's own status was changed")
	}
}
