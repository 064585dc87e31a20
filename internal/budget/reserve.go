package budget

import (
	"context"
	"sync"
)

// Reserve takes from an account in steps, and keeps one step for small needs:
// what fits into it never fails, however full the budget is by then.
type Reserve struct {
	ctx  context.Context
	step int64

	mu   sync.Mutex
	free int64
}

// NewReserve takes the first step from ctx's account, or returns ErrFull.
func NewReserve(ctx context.Context, step int64) (*Reserve, error) {
	if err := Take(ctx, step); err != nil {
		return nil, err
	}
	return &Reserve{ctx: ctx, step: step, free: step}, nil
}

// Take takes n bytes of the reserve, which grows by what it lacks and a step,
// or by what it lacks, or returns ErrFull.
func (r *Reserve) Take(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if lack := n - r.free; lack > 0 {
		more := lack + r.step
		if Take(r.ctx, more) != nil {
			more = lack
			if err := Take(r.ctx, more); err != nil {
				return err
			}
		}
		r.free += more
	}
	r.free -= n
	return nil
}

// Give returns n bytes to the reserve, and to the account what is more than
// two steps.
func (r *Reserve) Give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free += n; r.free > 2*r.step {
		Give(r.ctx, r.free-r.step)
		r.free = r.step
	}
}
