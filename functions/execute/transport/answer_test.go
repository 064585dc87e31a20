package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// shelf is a Record that holds answers of a size.
type shelf struct {
	holds  int
	answer []byte
	err    error
	tries  []int
}

func (s *shelf) Finish(_ context.Context, _ string, answer []byte) error {
	s.tries = append(s.tries, len(answer))
	if len(answer) > s.holds {
		return fmt.Errorf("record: %w", pool.ErrTooLarge)
	}
	s.answer = answer
	return nil
}

func (s *shelf) Await(context.Context, string) ([]byte, error) { return s.answer, s.err }

func requested(t *testing.T) *cloudevent.Event {
	t.Helper()
	e := cloudevent.New()
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

func decoded(t *testing.T, e *cloudevent.Event) *execution.Result {
	t.Helper()
	r := new(execution.Result)
	if err := json.Unmarshal(e.Data(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A completed event is no larger than a broker takes, envelope included, and
// says what was cut.
func TestBounded(t *testing.T) {
	tr := &Transport{source: "/preheat", eventBytes: 100_000}
	for size, cut := range map[int]bool{10: false, 90_000: false, 1 << 20: true} {
		e, err := tr.bounded(requested(t), resultOf(size))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		r := decoded(t, e)
		if len(whole) > tr.eventBytes || r.Truncated.Stdout.Truncated != cut || r.Truncated.Stdout.TotalBytes != int64(size) {
			t.Errorf("%d bytes of output: an event of %d, %+v", size, len(whole), r.Truncated.Stdout)
		}
		if e.Subject() != "sandbox-1" || e.Extensions()["causationid"] != "7" || e.Extensions()["mine"] != "x" || e.Validate() != nil {
			t.Errorf("%d bytes of output: %v", size, e)
		}
	}
	unbounded := &Transport{source: "/preheat"}
	if e, err := unbounded.bounded(requested(t), resultOf(1<<20)); err != nil || decoded(t, e).Truncated.Stdout.Truncated {
		t.Errorf("without a bound: %v, cut", err)
	}
}

// What a record cannot hold is recorded smaller and smaller, and what is
// recorded is what a later delivery gets.
func TestRemember(t *testing.T) {
	s := &shelf{holds: 50_000}
	tr := &Transport{source: "/preheat", record: s}
	result := resultOf(1 << 20)
	e, err := tr.bounded(requested(t), result)
	if err != nil {
		t.Fatal(err)
	}
	tr.remember(t.Context(), "key", e, result)
	if len(s.answer) == 0 || len(s.tries) < 3 {
		t.Fatalf("tried %v", s.tries)
	}
	if whole := decoded(t, e); whole.Truncated.Stdout.Truncated || len(whole.Stdout) != 1<<20/10*10 {
		t.Errorf("the first delivery's answer has been cut, too: %+v", whole.Truncated.Stdout)
	}
	again, err := tr.recorded(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if r := decoded(t, again); again.ID() != e.ID() || r.SandboxName != "sandbox-1" || !r.Truncated.Stdout.Truncated || r.Truncated.Stdout.TotalBytes != 1<<20 {
		t.Errorf("the second delivery gets %v", again)
	}
	// What fits nowhere is given up at the least size.
	s = &shelf{holds: 10}
	(&Transport{source: "/preheat", record: s}).remember(t.Context(), "key", e, result)
	if last := s.tries[len(s.tries)-1]; s.answer != nil || last > 2*minEventData {
		t.Errorf("tried %v", s.tries)
	}
}

func TestRecorded(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		shelf  shelf
		status int // of a problem, 0 for another error
		none   bool
	}{
		"interrupted":     {shelf{err: fmt.Errorf("x: %w", pool.ErrInterrupted)}, http.StatusGone, false},
		"cannot be read":  {shelf{err: fmt.Errorf("x: %w", pool.ErrClosed)}, http.StatusServiceUnavailable, false},
		"any other error": {shelf{err: broken}, 0, false},
		"no event":        {shelf{answer: []byte("{")}, 0, false},
		"nothing yet":     {shelf{}, 0, true},
	} {
		e, err := (&Transport{record: &test.shelf}).recorded(t.Context(), "key")
		var p *execution.Problem
		switch {
		case e != nil || (err == nil) != test.none:
			t.Errorf("%s: %v, %v", name, e, err)
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
