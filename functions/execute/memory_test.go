package execute_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/budget"
)

// writing runs a program that writes n pieces of 10,000 bytes and a file as
// large, and ends when its context does.
func writing(n int, piece string) *failing {
	return partly(func(ctx context.Context, sink pool.Sink) (pool.Outcome, error) {
		for range n {
			if ctx.Err() != nil {
				return pool.Outcome{Status: execution.StatusCancelled, ExitCode: 137}, nil
			}
			sink.Output(execution.Stdout, []byte(strings.Repeat(piece, 10_000)), 0)
		}
		sink.Artifact(execution.Artifact{Path: "a", Content: strings.Repeat("x", 10_000)})
		sink.Result(execution.RichResult{MIME: "text/plain", Data: strings.Repeat("x", 10_000)})
		return pool.Outcome{Status: execution.StatusSucceeded}, ctx.Err()
	})
}

// A program whose output exceeds the memory of the process is ended, and what
// there was is returned: never as a success (I6), nor as a failure of the
// program (I11).
func TestI11NoMemoryForTheResult(t *testing.T) {
	for name, piece := range map[string]string{"text": "x", "binary": "\xff"} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(1 << 20)
			e := newExecutor(writing(100, piece))
			ctx := budget.With(t.Context(), b.Open())
			r, err := e.Execute(ctx, "id", e.program(t, hello()), nil)
			p := problemOf(t, err, 503, execution.ProblemNotReady)
			if p.RetryAfterSeconds == 0 || r.Status != execution.StatusPlatformError || !strings.HasPrefix(r.Stdout, "partly") {
				t.Errorf("%+v, status %s, %.10q", p, r.Status, r.Stdout)
			}
			held := int64(len(r.Stdout))
			if r.StdoutBase64 != nil {
				held += int64(len(*r.StdoutBase64))
			}
			if held > b.Used() || b.Used() > b.Size() {
				t.Errorf("%d bytes are held, %d are used", held, b.Used())
			}
			e.checkReleased(t, 1)
		})
	}
}

// Without memory no sandbox is claimed; with little, little output is returned.
func TestMemoryIsReservedBeforeTheClaim(t *testing.T) {
	b := budget.New(100 << 10)
	e := newExecutor(writing(1, "x"))
	first := budget.With(t.Context(), b.Open())
	if _, err := e.Execute(first, "id", e.program(t, hello()), nil); err != nil {
		t.Error(err)
	}
	second := budget.With(t.Context(), b.Open())
	p := problemOf(t, func() error { _, err := e.Execute(second, "id", e.program(t, hello()), nil); return err }(), 503, execution.ProblemNotReady)
	if p.RetryAfterSeconds == 0 || len(e.pool.claims) != 1 {
		t.Errorf("%+v after %d claims", p, len(e.pool.claims))
	}
}

// The program of an event does not run twice: it goes on without memory, and
// its result says what it lacks.
func TestI7EventWithoutMemory(t *testing.T) {
	b := budget.New(200 << 10)
	f := writing(100, "x")
	e := newExecutor(f)
	r, err := e.ExecuteEvent(budget.With(t.Context(), b.Open()), "id", execute.Event{Key: "k"}, e.program(t, hello()))
	if err != nil || r.Status != execution.StatusSucceeded {
		t.Fatalf("%+v, %v", r, err)
	}
	n := r.Truncated.Stdout
	if !n.Truncated || n.TotalBytes != 1_000_006 || n.CapturedBytes != int64(len(r.Stdout)) || n.HeadBytes != n.CapturedBytes || n.CapturedBytes < 50_000 {
		t.Errorf("%+v of %d bytes", n, len(r.Stdout))
	}
	if len(r.Artifacts) != 1 || len(r.Artifacts[0].Content) != 10_000 && r.Artifacts[0].Omitted == "" {
		t.Errorf("%+v", r.Artifacts)
	}
	if !strings.Contains(strings.Join(r.Notes, " "), "no memory") {
		t.Errorf("notes %q", r.Notes)
	}
	e.checkReleased(t, 1)
}

// No more is captured of an event than its answer can hold.
func TestEventCapturesNoMoreThanItsAnswer(t *testing.T) {
	asked := make(chan pool.Limits, 1)
	e := newExecutor(&failing{run: func(_ context.Context, run pool.Run, _ pool.Sink) (pool.Outcome, error) {
		asked <- run.Limits
		return pool.Outcome{Status: execution.StatusSucceeded}, nil
	}})
	if _, err := e.ExecuteEvent(t.Context(), "id", execute.Event{AnswerBytes: 1000}, e.program(t, hello())); err != nil {
		t.Fatal(err)
	}
	if l := <-asked; l.Output != 1000 || l.ArtifactBytes != 1000 || l.ResultBytes != 1000 {
		t.Errorf("%+v", l)
	}
}

// What a sink refuses ends the execution.
func TestSinkRefuses(t *testing.T) {
	e := newExecutor(writing(100, "x"))
	s := &sink{refuses: budget.ErrFull}
	r, err := e.Execute(t.Context(), "id", e.program(t, hello()), s)
	problemOf(t, err, 503, execution.ProblemNotReady)
	if r.Status != execution.StatusPlatformError || s.bytes > 20_000 {
		t.Errorf("%s after %d bytes", r.Status, s.bytes)
	}
	if errors.Is(err, budget.ErrFull) {
		t.Errorf("the caller gets %v", err)
	}
	e.checkReleased(t, 1)
}
