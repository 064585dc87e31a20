package cloudevent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"

	"github.com/preheat-dev/preheat/internal/budget"
)

// shelf is a Record that holds answers of a size.
type shelf struct {
	holds   int
	precise bool
	answer  []byte
	err     error
	tries   []int
}

func (s *shelf) Finish(_ context.Context, _ string, answer []byte) error {
	s.tries = append(s.tries, len(answer))
	if len(answer) > s.holds {
		if s.precise {
			return fmt.Errorf("record: %w", &execute.TooLargeError{Size: len(answer), Max: s.holds})
		}
		return fmt.Errorf("record: %w", execute.ErrTooLarge)
	}
	s.answer = answer
	return nil
}

func (s *shelf) Await(context.Context, string) ([]byte, error) { return s.answer, s.err }

func requested(t *testing.T) *ce.Event {
	t.Helper()
	e := ce.New()
	e.SetID("7")
	e.SetSource("/test")
	e.SetType(execution.TypeRequested)
	e.SetExtension("mine", "x")
	return &e
}

func resultOf(size int) *execution.Result {
	r := &execution.Result{Status: execution.StatusSucceeded, SandboxName: "sandbox-1", Stdout: strings.Repeat("0123456789", size/10)}
	r.Truncated.Stdout = execution.StreamTruncation{CapturedBytes: int64(size), HeadBytes: int64(size), TotalBytes: int64(size)}
	return r
}

func decoded(t *testing.T, a *answer) *execution.Result {
	t.Helper()
	r := new(execution.Result)
	if err := json.Unmarshal(a.data, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// bound returns the answer to an event, of at most limit bytes.
func bound(ctx context.Context, t *testing.T, receiver *Receiver, r *execution.Result, limit int) (*answer, *execution.Result) {
	t.Helper()
	a, r, err := receiver.bounded(ctx, requested(t), newAnswer(r), r, limit)
	if err != nil {
		t.Fatal(err)
	}
	return a, r
}

// A completed event is no larger than a broker takes, envelope included, and
// says what was cut.
func TestBounded(t *testing.T) {
	receiver := &Receiver{source: "/preheat"}
	const limit = 100_000
	for size, cut := range map[int]bool{10: false, 90_000: false, 1 << 20: true} {
		a, _ := bound(t.Context(), t, receiver, resultOf(size), limit)
		e := receiver.completed(requested(t), a)
		whole, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		r := decoded(t, a)
		if len(whole) > limit || cut && len(whole) < limit-100 || r.Truncated.Stdout.Truncated != cut || r.Truncated.Stdout.TotalBytes != int64(size) {
			t.Errorf("%d bytes of output: an event of %d, %+v", size, len(whole), r.Truncated.Stdout)
		}
		if e.Subject() != "sandbox-1" || e.Extensions()["causationid"] != "7" || e.Extensions()["mine"] != "x" || e.Validate() != nil {
			t.Errorf("%d bytes of output: %v", size, e)
		}
	}
	if a, _ := bound(t.Context(), t, receiver, resultOf(1<<20), 0); decoded(t, a).Truncated.Stdout.Truncated {
		t.Error("cut without a bound")
	}
}

// An event whose program ran is answered whatever memory is left, with less.
func TestBoundedByTheBudget(t *testing.T) {
	receiver := &Receiver{source: "/preheat"}
	b := budget.New(100_000)
	a, _ := bound(budget.With(t.Context(), b.Open()), t, receiver, resultOf(1<<20), 0)
	if r := decoded(t, a); len(a.data) > 100_000/encodedCopies || len(a.data) < minEventData || !r.Truncated.Stdout.Truncated {
		t.Errorf("%d bytes, %+v", len(a.data), r.Truncated.Stdout)
	}
	a, _ = bound(budget.With(t.Context(), b.Open()), t, receiver, resultOf(1<<20), 0)
	if len(a.data) > 100_000/encodedCopies {
		t.Errorf("%d bytes without memory", len(a.data))
	}
}

// What a record cannot hold is recorded smaller and smaller, and what is
// recorded is what a later delivery gets.
func TestStoreAnswer(t *testing.T) {
	s := &shelf{holds: 50_000}
	receiver := &Receiver{source: "/preheat", record: s}
	a, result := bound(t.Context(), t, receiver, resultOf(1<<20), 0)
	receiver.storeAnswer(t.Context(), "key", requested(t), a, result)
	if len(s.answer) == 0 || len(s.tries) < 3 {
		t.Fatalf("tried %v", s.tries)
	}
	if whole := decoded(t, a); whole.Truncated.Stdout.Truncated || len(whole.Stdout) != 1<<20/10*10 {
		t.Errorf("the first delivery's answer has been cut, too: %+v", whole.Truncated.Stdout)
	}
	again, err := receiver.awaitAnswer(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if r := decoded(t, again); again.id != a.id || r.SandboxName != "sandbox-1" || !r.Truncated.Stdout.Truncated || r.Truncated.Stdout.TotalBytes != 1<<20 {
		t.Errorf("the second delivery gets %v", again)
	}
	// A record that says by how much is tried twice.
	s = &shelf{holds: 50_000, precise: true}
	(&Receiver{source: "/preheat", record: s}).storeAnswer(t.Context(), "key", requested(t), a, result)
	if len(s.tries) != 2 || len(s.answer) < 45_000 {
		t.Errorf("tried %v", s.tries)
	}
	// What fits nowhere is given up at the least size.
	s = &shelf{holds: 10}
	(&Receiver{source: "/preheat", record: s}).storeAnswer(t.Context(), "key", requested(t), a, result)
	if last := s.tries[len(s.tries)-1]; s.answer != nil || last > 2*minEventData {
		t.Errorf("tried %v", s.tries)
	}
}

// Each delivery gets its own extensions, whoever had the program run.
func TestEachDeliveryHasItsExtensions(t *testing.T) {
	s := &shelf{holds: 50_000}
	receiver := &Receiver{source: "/preheat", record: s}
	a, result := bound(t.Context(), t, receiver, resultOf(10), 0)
	receiver.storeAnswer(t.Context(), "key", requested(t), a, result)
	recorded, err := receiver.awaitAnswer(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	other := requested(t)
	other.SetExtension("mine", nil)
	other.SetExtension("yours", "y")
	for name, a := range map[string]*answer{"remembered": a, "recorded": recorded} {
		e := receiver.completed(other, a)
		if x := e.Extensions(); len(x) != 2 || x["yours"] != "y" || x["causationid"] != "7" || e.ID() != a.id {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestAwaitAnswer(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		shelf  shelf
		status int // of a problem, 0 for another error
		none   bool
	}{
		"interrupted":     {shelf{err: fmt.Errorf("x: %w", execute.ErrInterrupted)}, http.StatusGone, false},
		"no longer kept":  {shelf{err: fmt.Errorf("x: %w", execute.ErrAnswerDropped)}, http.StatusGone, false},
		"cannot be read":  {shelf{err: fmt.Errorf("x: %w", execute.ErrUnavailable)}, http.StatusServiceUnavailable, false},
		"any other error": {shelf{err: broken}, 0, false},
		"no event":        {shelf{answer: []byte("{")}, 0, false},
		"nothing yet":     {shelf{}, 0, true},
	} {
		a, err := (&Receiver{record: &test.shelf}).awaitAnswer(t.Context(), "key")
		var p *execution.Problem
		switch {
		case a != nil || (err == nil) != test.none:
			t.Errorf("%s: %v, %v", name, a, err)
		case test.status != 0 && (!errors.As(err, &p) || p.Status != test.status):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What no delivery can get right is 400 to a broker, which would send 404 again.
func TestRefusal(t *testing.T) {
	unknown := execution.NewProblem(execution.ProblemNotFound, "There is no pool %q.", "x")
	unknown.Field = "pool"
	busy := execution.NewProblem(execution.ProblemNoSandbox, "busy")
	for name, test := range map[string]struct {
		err    error
		direct bool
		status int
	}{
		"unknown pool, broker":   {unknown, false, http.StatusBadRequest},
		"unknown pool, chat":     {unknown, true, http.StatusNotFound},
		"no sandbox, for either": {busy, false, http.StatusTooManyRequests},
	} {
		var p *execution.Problem
		if err := refusal(test.err, test.direct); !errors.As(err, &p) || p.Status != test.status {
			t.Errorf("%s: %v", name, err)
		} else if name == "unknown pool, broker" && (p.Field != "pool" || p.Detail != unknown.Detail) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if err := refusal(context.Canceled, false); !errors.Is(err, context.Canceled) {
		t.Errorf("another error: %v", err)
	}
}
