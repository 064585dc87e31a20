package capture_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/client"
	"github.com/preheat-dev/preheat/functions/doors/capture"
	"github.com/preheat-dev/preheat/internal/budget"
)

// yield is a runner whose program yields what it says.
type yield func(h client.Handler) (*execution.Exit, error)

func (y yield) Stream(_ context.Context, _ execution.Request, h client.Handler) (*execution.Exit, error) {
	return y(h)
}

func (y yield) Execute(context.Context, execution.Request, string) (*execution.Result, error) {
	exit, err := y(client.Handler{})
	if exit == nil {
		return nil, err
	}
	return &execution.Result{Status: exit.Status, ExitCode: *exit.ExitCode, Signal: exit.Signal, Truncated: exit.Truncated}, err
}

// watched observes and does nothing.
var watched = capture.Observer{Start: func(execution.Start) {}}

func ended(status execution.Status, code int) *execution.Exit {
	return &execution.Exit{Status: status, ExitCode: &code}
}

// Every end but a plain success has words, and none of them is complete.
func TestExplain(t *testing.T) {
	signal := "SIGSEGV"
	cut := ended(execution.StatusSucceeded, 0)
	cut.Truncated.Stderr = execution.StreamTruncation{Truncated: true, CapturedBytes: 10, HeadBytes: 5, TotalBytes: 100}
	killed := ended(execution.StatusFailed, 139)
	killed.Signal = &signal
	busy := execution.NewProblem(execution.ProblemNoSandbox, "All are in use.")
	busy.RetryAfterSeconds = 3
	for name, test := range map[string]struct {
		exit *execution.Exit
		err  error
		want []string
	}{
		"succeeded":     {exit: ended(execution.StatusSucceeded, 0)},
		"exit code":     {exit: ended(execution.StatusFailed, 3), want: []string{"exit code 3"}},
		"signal":        {exit: killed, want: []string{"SIGSEGV"}},
		"time limit":    {exit: ended(execution.StatusTimedOut, 137), want: []string{"time limit"}},
		"memory":        {exit: ended(execution.StatusOutOfMemory, 137), want: []string{"out of memory"}},
		"output":        {exit: ended(execution.StatusOutputLimit, 137), want: []string{"more output"}},
		"cancelled":     {exit: ended(execution.StatusCancelled, 137), want: []string{"cancelled"}},
		"truncated":     {exit: cut, want: []string{"10 of the 100 bytes of stderr"}},
		"no sandbox":    {err: busy, want: []string{"All are in use.", "again in 3 seconds"}},
		"cut":           {err: errors.Join(client.ErrCut, errors.New("reset")), want: []string{"not known"}},
		"not reachable": {err: errors.New("dial http://user:hunter2@x"), want: []string{"cannot be reached"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, watch := range []capture.Observer{{}, watched} {
				o, err := capture.Run(t.Context(), yield(func(client.Handler) (*execution.Exit, error) { return test.exit, test.err }), execution.Request{}, watch)
				if err != nil {
					t.Fatal(err)
				}
				said := strings.Join(o.Explain(), " ")
				for _, want := range test.want {
					if !strings.Contains(said, want) {
						t.Errorf("%q lacks %q", said, want)
					}
				}
				if o.Complete() != (len(test.want) == 0) || strings.Contains(said, "hunter2") {
					t.Errorf("complete: %t, %q", o.Complete(), said)
				}
			}
		})
	}
}

func TestStreamsSayWhereBytesAreMissing(t *testing.T) {
	o, err := capture.Run(t.Context(), yield(func(h client.Handler) (*execution.Exit, error) {
		err := errors.Join(h.Output(execution.Stdout, []byte("head"), 0), h.Output(execution.Stderr, []byte("e"), 0), h.Output(execution.Stdout, []byte("tail"), 7))
		return ended(execution.StatusSucceeded, 0), err
	}), execution.Request{}, watched)
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Stdout.Text(); got != "head\n[7 bytes are left out here]\ntail" {
		t.Errorf("stdout is %q", got)
	}
	if string(o.Both) != "heade\n[7 bytes are left out here]\ntail" || o.Stderr.Text() != "e" {
		t.Errorf("both are %q", o.Both)
	}
}

// What is kept counts as memory of the exchange, and ends the program where there
// is none.
func TestMemoryIsBounded(t *testing.T) {
	b := budget.New(64 << 10)
	account := b.Open()
	yielded := 0
	o, err := capture.Run(budget.With(t.Context(), account), yield(func(h client.Handler) (*execution.Exit, error) {
		for {
			if err := h.Output(execution.Stdout, make([]byte, 1<<10), 0); err != nil {
				return nil, err
			}
			yielded++
		}
	}), execution.Request{}, watched)
	if err != nil {
		t.Fatal(err)
	}
	if o.Complete() || yielded > 64 || !slices.ContainsFunc(o.Explain(), func(s string) bool { return strings.Contains(s, "memory") }) {
		t.Errorf("%d KiB came, %v", yielded, o.Explain())
	}
	account.Close()
	if b.Used() != 0 {
		t.Errorf("%d bytes are still taken", b.Used())
	}
}
