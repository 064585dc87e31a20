package lifecycle

import (
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// pools are the sandboxes that the server says it has, by state.
func pools(t *testing.T, p *product.Product) map[string][]string {
	t.Helper()
	var state struct{ Pools []execution.PoolStatus }
	p.Get(t, "/v1/pools", &state)
	names := map[string][]string{}
	for _, pool := range state.Pools {
		for _, s := range pool.Sandboxes {
			names[s.State] = append(names[s.State], s.Name)
		}
	}
	return names
}

// nothingLeft fails the test if a stopped server has left anything.
func nothingLeft(t *testing.T, p *product.Product) {
	t.Helper()
	if left := p.Leftovers(t); left != (product.Leftovers{}) {
		t.Errorf("the server has left %+v", left)
	}
}
