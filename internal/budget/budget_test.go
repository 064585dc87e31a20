package budget_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/preheat-dev/preheat/internal/budget"
)

func TestAccountsShareABudget(t *testing.T) {
	b := budget.New(10)
	one, other := b.Open(), b.Open()
	if err := one.Take(6); err != nil {
		t.Fatal(err)
	}
	if err := other.Take(5); !errors.Is(err, budget.ErrFull) {
		t.Fatalf("11 of 10 bytes: %v", err)
	}
	one.Give(2)
	if err := other.Take(5); err != nil {
		t.Fatalf("5 bytes after 2 came back: %v", err)
	}
	one.Close()
	if got := b.Used(); got != 5 {
		t.Fatalf("%d bytes are used after one account closed, not 5", got)
	}
	if err := one.Take(1); !errors.Is(err, budget.ErrFull) {
		t.Fatalf("a closed account takes: %v", err)
	}
	other.Give(100)
	if got := b.Used(); got != 0 {
		t.Fatalf("%d bytes are used after all were given back", got)
	}
}

func TestContextWithoutAccountHasNoBound(t *testing.T) {
	if err := budget.Take(context.Background(), 1<<60); err != nil {
		t.Fatal(err)
	}
	budget.Give(context.Background(), 1)
	var none *budget.Budget
	ctx := budget.With(context.Background(), none.Open())
	if err := budget.Take(ctx, 1<<60); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentAccountsNeverExceedTheBudget(t *testing.T) {
	b := budget.New(100)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			a := b.Open()
			defer a.Close()
			for range 1000 {
				if a.Take(30) == nil {
					if used := b.Used(); used > b.Size() {
						t.Errorf("%d of %d bytes are used", used, b.Size())
					}
					a.Give(30)
				}
			}
		})
	}
	wg.Wait()
	if got := b.Used(); got != 0 {
		t.Fatalf("%d bytes are still used", got)
	}
}
