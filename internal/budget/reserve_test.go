package budget_test

import (
	"errors"
	"testing"

	"github.com/preheat-dev/preheat/internal/budget"
)

func TestReserve(t *testing.T) {
	b := budget.New(100)
	ctx := budget.With(t.Context(), b.Open())
	r, err := budget.NewReserve(ctx, 10)
	if err != nil || b.Used() != 10 {
		t.Fatalf("%v, %d bytes are used", err, b.Used())
	}
	other := b.Open()
	if err := other.Take(90); err != nil {
		t.Fatal(err)
	}
	if err := r.Take(10); err != nil {
		t.Errorf("what was reserved is refused: %v", err)
	}
	if err := r.Take(1); !errors.Is(err, budget.ErrFull) {
		t.Errorf("a byte beyond the reserve: %v", err)
	}
	if _, err := budget.NewReserve(ctx, 10); !errors.Is(err, budget.ErrFull) {
		t.Errorf("a second reserve: %v", err)
	}
	other.Give(5)
	if err := r.Take(5); err != nil {
		t.Errorf("less than a step is left, and refused: %v", err)
	}
	other.Close()
	if err := r.Take(50); err != nil {
		t.Error(err)
	}
	r.Give(65)
	if got := b.Used(); got != 10 {
		t.Errorf("%d bytes are used after all were given back, want one step", got)
	}
}
