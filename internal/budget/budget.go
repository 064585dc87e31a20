// Package budget bounds the bytes that a process holds for all its callers
// together: request bodies, captured output, answers that wait to be sent.
//
// A Budget belongs to the process, an Account to one exchange. Bytes are taken
// as they come and are never waited for: a caller for whom there are none is
// told to come again.
package budget

import (
	"context"
	"errors"
	"sync"
)

// ErrFull says that the process holds as many bytes as it may.
var ErrFull = errors.New("the memory for requests and results is used up")

// Budget is the number of bytes that all accounts may hold together. A nil
// Budget has no bound.
type Budget struct {
	size int64

	mu   sync.Mutex
	used int64
}

// New returns a budget of size bytes.
func New(size int64) *Budget { return &Budget{size: size} }

// Size returns how many bytes may be held, and Used how many are.
func (b *Budget) Size() int64 { return b.size }

// Used returns how many bytes the accounts hold.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Open returns an account that holds nothing yet.
func (b *Budget) Open() *Account { return &Account{budget: b} }

func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.size-b.used {
		return false
	}
	b.used += n
	return true
}

func (b *Budget) give(n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
}

// Account is what one exchange holds. It is safe for concurrent use.
type Account struct {
	budget *Budget

	mu     sync.Mutex
	held   int64
	closed bool
}

// Take adds n bytes to what the account holds, or returns ErrFull and adds
// none. A closed account takes nothing.
func (a *Account) Take(n int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.budget.take(n) {
		return ErrFull
	}
	a.held += n
	return nil
}

// Give returns n bytes that the account holds.
func (a *Account) Give(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = min(n, a.held)
	a.held -= n
	a.budget.give(n)
}

// Close returns all that the account holds.
func (a *Account) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.budget.give(a.held)
	a.held = 0
}

type contextKey struct{}

// With returns a context whose Take and Give are those of a.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// Take takes n bytes from ctx's account. Without one there is no bound.
func Take(ctx context.Context, n int64) error {
	if a, ok := ctx.Value(contextKey{}).(*Account); ok {
		return a.Take(n)
	}
	return nil
}

// Give returns n bytes to ctx's account.
func Give(ctx context.Context, n int64) {
	if a, ok := ctx.Value(contextKey{}).(*Account); ok {
		a.Give(n)
	}
}
