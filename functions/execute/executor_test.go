package execute_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

func TestExecute(t *testing.T) {
	f := &failing{run: func(_ context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
		if string(run.Code) != "print(1)" || run.Limits.Timeout != 2*time.Second || run.Limits.Memory != 0 || run.Limits.Artifacts != 20 {
			t.Errorf("asked for %+v", run)
		}
		sink.Started()
		sink.Output(execution.Stdout, []byte("a\xff"), 0)
		sink.Output(execution.Stderr, []byte("e"), 0)
		sink.Output(execution.Stdout, []byte("b"), 7)
		sink.Result(execution.RichResult{MIME: "text/html", Data: "<b>"})
		sink.Artifact(execution.Artifact{Path: "x"})
		return pool.Outcome{Status: execution.StatusFailed, ExitCode: 139, Signal: "SIGSEGV", Run: time.Second, Notes: []string{"n"}}, nil
	}}
	e := newExecutor(f)
	r, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stdout != "a\uFFFDb" || r.StdoutBase64 == nil || *r.StdoutBase64 != "Yf9i" || r.Stderr != "e" || r.StderrBase64 != nil {
		t.Errorf("output %+v", r)
	}
	if want := (execution.StreamTruncation{Truncated: true, CapturedBytes: 3, HeadBytes: 2, TotalBytes: 10}); r.Truncated.Stdout != want {
		t.Errorf("stdout %+v", r.Truncated.Stdout)
	}
	if r.Status != execution.StatusFailed || r.ExitCode != 139 || r.Signal == nil || *r.Signal != "SIGSEGV" || r.SandboxName != "main-1" ||
		len(r.Results) != 1 || len(r.Artifacts) != 1 || len(r.Notes) != 1 || r.TimingsMS.Run != 1000 {
		t.Errorf("result %+v", r)
	}
	if c := f.claims[0]; c.ID != "id" || c.Language != "python" || time.Until(c.Deadline) < 10*time.Second {
		t.Errorf("claim %+v", c)
	}
	e.checkReleased(t, 1)
}

func TestClaimFails(t *testing.T) {
	for name, test := range map[string]struct {
		err        error
		status     int
		kind       execution.ProblemType
		field      string
		retryAfter bool
	}{
		"no sandbox":       {fmt.Errorf("x: %w", pool.ErrNoSandbox), 429, execution.ProblemNoSandbox, "", true},
		"over quota":       {fmt.Errorf("x: %w", pool.ErrOverQuota), 429, execution.ProblemOverQuota, "", true},
		"unknown pool":     {fmt.Errorf("x: %w", pool.ErrUnknownPool), 404, execution.ProblemNotFound, "pool", false},
		"unknown language": {fmt.Errorf("x: %w", pool.ErrUnknownLanguage), 404, execution.ProblemNotFound, "language", false},
		"closed":           {fmt.Errorf("x: %w", pool.ErrClosed), 503, execution.ProblemNotReady, "", true},
		"invalid":          {fmt.Errorf("x: %w", &pool.InvalidError{Field: "limits.memory_bytes"}), 422, execution.ProblemInvalidValue, "limits.memory_bytes", false},
		"anything else":    {errors.New("secret"), 500, execution.ProblemInternal, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(&failing{claim: func(context.Context, pool.Claim) error { return test.err }})
			r, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
			p := problemOf(t, err, test.status, test.kind)
			if p.Field != test.field || (p.RetryAfterSeconds > 0) != test.retryAfter || strings.Contains(p.Detail, "secret") {
				t.Errorf("%+v", p)
			}
			if r.Status != execution.StatusPlatformError || r.Results == nil || r.Artifacts == nil || r.Notes == nil {
				t.Errorf("%+v", r)
			}
			e.checkReleased(t, 0)
		})
	}
}

// A wait in vain names the limit that it went by, with and without records of events.
func TestNoSandboxNamesItsLimit(t *testing.T) {
	e := newExecutor(&failing{claim: func(context.Context, pool.Claim) error { return pool.ErrNoSandbox }})
	for name, test := range map[string]struct {
		event execute.Event
		want  string
	}{
		"an event":                        {execute.Event{Key: "k"}, "within 120 seconds (event_queue_seconds)"},
		"an event that nobody records":    {execute.Event{}, "within 120 seconds (event_queue_seconds)"},
		"a request that is not run twice": {execute.Event{Key: "k", Direct: true}, "within 10 seconds (queue_seconds)"},
	} {
		_, err := e.ExecuteEvent(t.Context(), "id", test.event, e.program(t, hello()))
		if p := problemOf(t, err, 429, execution.ProblemNoSandbox); !strings.Contains(p.Detail, test.want) {
			t.Errorf("%s: %q does not say %q", name, p.Detail, test.want)
		}
	}
	_, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
	if p := problemOf(t, err, 429, execution.ProblemNoSandbox); !strings.Contains(p.Detail, "within 10 seconds (queue_seconds)") {
		t.Errorf("a request: %q", p.Detail)
	}
}

// Who finds no sandbox learns how long the line is, and when to come again.
func TestNoSandboxSaysHowLongTheLineIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := false
		e := newExecutor(&failing{
			status: []execution.PoolStatus{
				{Name: "other", Languages: []string{"ruby"}}, {Name: "main", Languages: []string{"python"}, Claimed: 2, Waiting: 5},
				{Name: "longer", Languages: []string{"python"}, Claimed: 2, Waiting: 50},
			},
			claim: func(context.Context, pool.Claim) error {
				if none {
					return pool.ErrNoSandbox
				}
				return nil
			},
			run: func(context.Context, pool.Run, pool.Sink) (pool.Outcome, error) {
				time.Sleep(4 * time.Second)
				return pool.Outcome{Status: execution.StatusSucceeded}, nil
			},
		})
		if _, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil); err != nil {
			t.Fatal(err)
		}
		none = true
		_, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
		p := problemOf(t, err, 429, execution.ProblemNoSandbox)
		if p.RetryAfterSeconds != 12 || p.Waiting == nil || *p.Waiting != 5 {
			t.Errorf("%+v", p)
		}
	})
}

func problemOf(t *testing.T, err error, status int, kind execution.ProblemType) *execution.Problem {
	t.Helper()
	var p *execution.Problem
	if !errors.As(err, &p) {
		t.Fatalf("not a problem: %v", err)
	}
	if p.Status != status || !p.IsKind(kind) {
		t.Fatalf("%d %s: %s", p.Status, p.Type, p.Detail)
	}
	return p
}

// A claim waits for as long as the queue allows, and no longer.
func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(&failing{claim: func(ctx context.Context, _ pool.Claim) error { return until(ctx, pool.ErrNoSandbox) }})
		began := time.Now()
		_, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
		problemOf(t, err, 429, execution.ProblemNoSandbox)
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		e.checkReleased(t, 0)
	})
}

// partly runs a program that writes a little, and then goes on with then.
func partly(then func(context.Context, pool.Sink) (pool.Outcome, error)) *failing {
	return &failing{run: func(ctx context.Context, _ pool.Run, sink pool.Sink) (pool.Outcome, error) {
		sink.Started()
		sink.Output(execution.Stdout, []byte("partly"), 0)
		return then(ctx, sink)
	}}
}

func TestRunFails(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		status int
		kind   execution.ProblemType
	}{
		"lost":          {fmt.Errorf("x: %w", pool.ErrSandboxLost), 502, execution.ProblemSandboxLost},
		"invalid":       {fmt.Errorf("x: %w", &pool.InvalidError{Detail: "no room"}), 422, execution.ProblemInvalidValue},
		"used":          {&wire.Failure{Code: wire.FailureUsed}, 500, execution.ProblemInternal},
		"token":         {&wire.Failure{Code: wire.FailureToken}, 500, execution.ProblemInternal},
		"runner failed": {&wire.Failure{Code: wire.FailureInternal}, 500, execution.ProblemInternal},
		"anything else": {io.ErrUnexpectedEOF, 500, execution.ProblemInternal},
	} {
		t.Run(name, func(t *testing.T) {
			e := newExecutor(partly(func(context.Context, pool.Sink) (pool.Outcome, error) { return pool.Outcome{}, test.err }))
			r, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
			problemOf(t, err, test.status, test.kind)
			// I6: nothing that failed is reported as exit code 0 and success.
			if r.Stdout != "partly" || r.SandboxName != "main-1" || r.Status != execution.StatusPlatformError {
				t.Errorf("%+v", r)
			}
			e.checkReleased(t, 1)
		})
	}
}

// A runner that does not report in time is not waited for, and a program that
// had to be ended for it was not cancelled by its caller.
func TestOvertime(t *testing.T) {
	for name, end := range map[string]func(context.Context) (pool.Outcome, error){
		"silent": func(ctx context.Context) (pool.Outcome, error) {
			return pool.Outcome{}, until(ctx, io.ErrUnexpectedEOF)
		},
		"late": func(ctx context.Context) (pool.Outcome, error) {
			<-ctx.Done()
			return pool.Outcome{Status: execution.StatusCancelled, ExitCode: 137, Signal: "SIGKILL"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newExecutor(partly(func(ctx context.Context, _ pool.Sink) (pool.Outcome, error) { return end(ctx) }))
				began := time.Now()
				r, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
				problemOf(t, err, 504, execution.ProblemDeadline)
				if r.Stdout != "partly" || r.Status != execution.StatusPlatformError {
					t.Errorf("%+v", r)
				}
				if waited := time.Since(began); waited != 10*time.Second {
					t.Errorf("waited %v", waited)
				}
				e.checkReleased(t, 1)
			})
		})
	}
}

func TestCancel(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newExecutor(&failing{claim: func(ctx context.Context, _ pool.Claim) error { return until(ctx, pool.ErrNoSandbox) }})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r, err := e.Execute(ctx, "id", e.program(t, hello()), nil)
			problemOf(t, err, 503, execution.ProblemNotReady)
			e.checkCancelled(t, r)
			e.checkReleased(t, 0)
		})
	})
	t.Run("before it started", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		e := newExecutor(&failing{run: func(ctx context.Context, _ pool.Run, _ pool.Sink) (pool.Outcome, error) {
			cancel()
			return pool.Outcome{}, until(ctx, io.EOF)
		}})
		r, err := e.Execute(ctx, "id", e.program(t, hello()), nil)
		problemOf(t, err, 503, execution.ProblemNotReady)
		e.checkCancelled(t, r)
		e.checkReleased(t, 1)
	})
	for name, reported := range map[string]bool{"reported": true, "not reported": false} {
		t.Run("while it runs, "+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			e := newExecutor(partly(func(ctx context.Context, _ pool.Sink) (pool.Outcome, error) {
				cancel()
				err := until(ctx, io.EOF)
				if reported {
					return pool.Outcome{Status: execution.StatusCancelled, ExitCode: 137, Signal: "SIGKILL"}, nil
				}
				return pool.Outcome{}, err
			}))
			r, err := e.Execute(ctx, "id", e.program(t, hello()), nil)
			if err != nil || r.Status != execution.StatusCancelled || r.ExitCode != 137 || r.Signal == nil || r.Stdout != "partly" {
				t.Errorf("%+v, %v", r, err)
			}
			e.checkReleased(t, 1)
		})
	}
}

// The runner shares its sandbox with the program: it is not trusted to keep to
// the limits, nor to say things once.
func TestRunnerThatFloods(t *testing.T) {
	flood := func(send func(pool.Sink)) *failing {
		return partly(func(ctx context.Context, sink pool.Sink) (pool.Outcome, error) {
			for ctx.Err() == nil {
				send(sink)
			}
			sink.Output(execution.Stdout, []byte("more"), 0)
			return pool.Outcome{Status: execution.StatusSucceeded}, nil
		})
	}
	piece := strings.Repeat("x", 64<<10)
	for name, send := range map[string]func(pool.Sink){
		"output":    func(s pool.Sink) { s.Output(execution.Stderr, []byte(piece), 0) },
		"nothing":   func(s pool.Sink) { s.Output(execution.Stderr, nil, 1) },
		"results":   func(s pool.Sink) { s.Result(execution.RichResult{Data: piece}) },
		"artifacts": func(s pool.Sink) { s.Artifact(execution.Artifact{Path: piece}) },
	} {
		t.Run(name, func(t *testing.T) {
			limits := execution.DefaultLimits()
			limits.Default.OutputBytes, limits.Results, limits.ResultBytes, limits.Artifacts, limits.ArtifactBytes = 100, 1, 100, 1, 100
			e := newExecutorWithin(flood(send), limits)
			r, err := e.Execute(t.Context(), "id", e.program(t, hello()), nil)
			problemOf(t, err, 502, execution.ProblemSandboxLost)
			if r.Stdout != "partly" || r.Status != execution.StatusPlatformError {
				t.Errorf("%.50q, status %s", r.Stdout, r.Status)
			}
			e.checkReleased(t, 1)
		})
	}
	t.Run("starts", func(t *testing.T) {
		e := newExecutor(partly(func(_ context.Context, sink pool.Sink) (pool.Outcome, error) {
			sink.Started()
			return pool.Outcome{Status: execution.StatusSucceeded}, nil
		}))
		s := &sink{}
		if _, err := e.Execute(t.Context(), "id", e.program(t, hello()), s); err != nil || s.starts != 1 {
			t.Errorf("%d starts, %v", s.starts, err)
		}
	})
}

// Honest runners stay within the allowance, also with everything at its most
// and in the smallest pieces.
func TestAllowanceIsEnough(t *testing.T) {
	limits := execution.DefaultLimits()
	e := newExecutor(partly(func(ctx context.Context, s pool.Sink) (pool.Outcome, error) {
		for range limits.Default.OutputBytes {
			s.Output(execution.Stdout, []byte{'x'}, 0)
			s.Output(execution.Stderr, []byte{'x'}, 0)
		}
		base64 := strings.Repeat("x", int(limits.ResultBytes)/3*4/limits.Results)
		for range limits.Results {
			s.Result(execution.RichResult{MIME: strings.Repeat("m", 100), Data: base64})
		}
		base64 = strings.Repeat("x", int(limits.ArtifactBytes)/3*4/limits.Artifacts)
		for range limits.Artifacts {
			s.Artifact(execution.Artifact{Path: strings.Repeat("p", 4*4096), MIME: strings.Repeat("m", 100), Content: base64})
		}
		return pool.Outcome{Status: execution.StatusSucceeded}, ctx.Err()
	}))
	s := &sink{}
	if r, err := e.Execute(t.Context(), "id", e.program(t, hello()), s); err != nil || r.Status != execution.StatusSucceeded {
		t.Fatalf("%+v, %v", r, err)
	}
	if s.results != limits.Results || s.artifacts != limits.Artifacts || s.bytes < 2*limits.Default.OutputBytes {
		t.Errorf("%+v", s)
	}
}

// A streamed execution keeps nothing of what it passed on.
func TestSinkTakesAll(t *testing.T) {
	e := newExecutor(partly(func(_ context.Context, s pool.Sink) (pool.Outcome, error) {
		s.Result(execution.RichResult{})
		s.Artifact(execution.Artifact{})
		return pool.Outcome{Status: execution.StatusSucceeded}, nil
	}))
	s := &sink{}
	r, err := e.Execute(t.Context(), "id", e.program(t, hello()), s)
	if err != nil || r.Stdout != "" || len(r.Results)+len(r.Artifacts) != 0 || r.Truncated.Stdout.TotalBytes != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	if s.starts != 1 || s.results != 1 || s.artifacts != 1 || s.bytes != 6 {
		t.Errorf("%+v", s)
	}
}

// What the pools say of their languages, aliases included, is what requests are
// checked against.
func TestLanguagesAreThoseOfThePools(t *testing.T) {
	e := newExecutor(&failing{})
	for name, want := range map[string]string{"Python": "python", "ruby": "ruby", "rb": "ruby", "RB": "ruby", "python3": ""} {
		p, problem := e.Check(&execution.Request{Language: name, Code: "1"})
		switch {
		case want == "" && problem == nil:
			t.Errorf("%s is %s", name, p.Language)
		case want != "" && (problem != nil || p.Language != want):
			t.Errorf("%s: %+v, %v", name, p, problem)
		}
	}
}
