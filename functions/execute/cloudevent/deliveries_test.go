package cloudevent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/preheat-dev/preheat/api/execution"
)

func answerOf(data string) *answer { return &answer{data: []byte(data)} }

// key is of an event with an id.
func key(id string) eventKey {
	e := ce.New()
	e.SetID(id)
	return keyOf(&e)
}

// TestI10OneRunPerEvent delivers events again and again from many goroutines.
// Each event runs until it has succeeded once; everyone then gets that answer.
func TestI10OneRunPerEvent(t *testing.T) {
	d := newDeliveries()
	const events, deliverers, rounds = 20, 16, 200
	var succeeded, running [events]atomic.Int64
	var wg sync.WaitGroup
	for n := range uint64(deliverers) {
		rng := rand.New(rand.NewPCG(n, 1))
		wg.Go(func() {
			for range rounds {
				i := rng.IntN(events)
				fails := rng.IntN(3) == 0
				answer, err := d.once(context.Background(), key(fmt.Sprint(i)), "", func() (*answer, bool, error) {
					if running[i].Add(1) > 1 {
						t.Errorf("event %d runs twice at once", i)
					}
					defer running[i].Add(-1)
					if fails {
						return nil, false, errors.New("no sandbox")
					}
					return answerOf(fmt.Sprint(i, " run ", succeeded[i].Add(1))), true, nil
				})
				if err == nil && string(answer.data) != fmt.Sprint(i, " run 1") {
					t.Errorf("event %d was answered %q", i, answer.data)
				}
			}
		})
	}
	wg.Wait()
	for i := range events {
		if n := succeeded[i].Load(); n != 1 {
			t.Errorf("event %d succeeded %d times", i, n)
		}
	}
}

func TestADeliveryThatGivesUpDoesNotWait(t *testing.T) {
	d := newDeliveries()
	hold := make(chan struct{})
	begun := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = d.once(context.Background(), key("1"), "", func() (*answer, bool, error) {
			close(begun)
			<-hold
			return answerOf("x"), true, nil
		})
	})
	<-begun
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if _, err := d.once(ctx, key("1"), "", nil); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
	close(hold)
	wg.Wait()
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	d := newDeliveries()
	runs := 0
	deliver := func(id string) {
		_, err := d.once(context.Background(), key(id), "", func() (*answer, bool, error) {
			runs++
			return answerOf(strings.Repeat("x", rememberBytes/4-16<<10)), true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		deliver(fmt.Sprint(i))
	}
	if d.bytes > rememberBytes || len(d.known) != 4 || len(d.answered) != 4 {
		t.Errorf("%d bytes in %d events are remembered", d.bytes, len(d.known))
	}
	deliver("9")
	if runs != 10 {
		t.Errorf("the newest event ran again")
	}
	deliver("0")
	if runs != 11 {
		t.Errorf("an event that was forgotten did not run again")
	}
}

// A program that has begun does not begin again, also if nobody knows how it
// ended.
func TestI10InterruptedDelivery(t *testing.T) {
	d := newDeliveries()
	lost := errors.New("the sandbox was lost")
	fail := func() (*answer, bool, error) { return nil, true, lost }
	if _, err := d.once(t.Context(), key("1"), "", fail); !errors.Is(err, lost) {
		t.Errorf("the first delivery: %v", err)
	}
	var p *execution.Problem
	if _, err := d.once(t.Context(), key("1"), "", nil); !errors.As(err, &p) || !p.IsKind(execution.ProblemInterrupted) || p.Status != http.StatusGone {
		t.Errorf("the second delivery: %v", err)
	}
}

// A delivery that began and failed takes memory, too, as does each key.
func TestFailedDeliveriesAreBounded(t *testing.T) {
	d := newDeliveries()
	const n = rememberBytes/deliverySize + 100
	for i := range n {
		_, _ = d.once(t.Context(), key(fmt.Sprint(i)), "", func() (*answer, bool, error) { return nil, true, errors.New("lost") })
	}
	if d.bytes > rememberBytes || len(d.known) != rememberBytes/deliverySize || len(d.answered) != len(d.known) {
		t.Errorf("%d bytes in %d of %d deliveries", d.bytes, len(d.known), n)
	}
}

// Another request under the same key is refused, while the first one runs and
// afterwards.
func TestOtherRequestOfAKeyIsRefused(t *testing.T) {
	d := newDeliveries()
	refused := func() {
		t.Helper()
		var p *execution.Problem
		if _, err := d.once(t.Context(), key("1"), "other", nil); !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity || p.Field != "Idempotency-Key" {
			t.Error(err)
		}
	}
	for range 2 {
		_, err := d.once(t.Context(), key("1"), "one", func() (*answer, bool, error) {
			refused()
			return answerOf("1"), true, nil
		})
		if err != nil {
			t.Error(err)
		}
		refused()
	}
}

// An answer that is too large to be kept is not made again.
func TestI10LargeAnswersDoNotRunAgain(t *testing.T) {
	d := newDeliveries()
	large := &answer{data: make([]byte, rememberBytes+1)}
	got, err := d.once(t.Context(), key("1"), "", func() (*answer, bool, error) { return large, true, nil })
	if got != large || err != nil {
		t.Error(err)
	}
	var p *execution.Problem
	if _, err := d.once(t.Context(), key("1"), "", nil); !errors.As(err, &p) || !p.IsKind(execution.ProblemInterrupted) {
		t.Error(err)
	}
}
