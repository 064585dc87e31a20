// Package execute runs programs in warm sandboxes. Executor.Execute is its one
// entry point: what speaks HTTP, events or streams only translates to it and
// from it. One call claims one sandbox, runs one program in it and gives it
// back to be destroyed, whatever happens in between.
package execute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/budget"
)

// overtime is how long after its own deadline a runner may still report.
const overtime = 8 * time.Second

const tracerName = "github.com/preheat-dev/preheat/functions/execute"

// Executor runs programs.
type Executor struct {
	pool pool.Pool
	// sessions is nil where the pool keeps none.
	sessions pool.Sessions
	limits   execution.ServerLimits
	metrics  *Metrics
	log      *slog.Logger
	pace     pace
}

// New returns an executor that claims its sandboxes from p, which it guards.
func New(p pool.Pool, limits execution.ServerLimits, m *Metrics, log *slog.Logger) *Executor {
	e := &Executor{pool: pool.Guard(p), limits: limits, metrics: m, log: log}
	if sessions, ok := p.(pool.Sessions); ok {
		e.sessions = pool.GuardSessions(sessions)
	}
	return e
}

// Limits returns what a request may ask for.
func (e *Executor) Limits() execution.ServerLimits { return e.limits }

// Languages returns what the pools offer.
func (e *Executor) Languages() []execution.Language {
	return append([]execution.Language{}, e.pool.Languages()...)
}

// Check returns the program that r asks for, or a problem about r.
func (e *Executor) Check(r *execution.Request) (*execution.Program, *execution.Problem) {
	return r.Validate(e.Languages(), e.limits)
}

// Execute runs p and returns its result. What p yields goes to sink while it
// runs: start is called first, once p has its sandbox and runs. id names the
// execution in logs.
//
// The error is a *execution.Problem when the platform failed; the result then
// holds what there was of it. When ctx ends, the program is killed at once;
// the result then says so, and so does the error if the program had not begun.
func (e *Executor) Execute(ctx context.Context, id string, p *execution.Program, sink Sink) (*execution.Result, error) {
	return e.measure(ctx, request{id: id, program: p, queue: e.queue()}, sink)
}

// Event is what ExecuteEvent knows of the event beside its program.
type Event struct {
	// Key identifies it, see pool.Claim.
	Key string
	// AnswerBytes bounds its answer, if not 0: no more than that is captured.
	AnswerBytes int64
	// Direct says that a client waits for the answer, as for that of a request:
	// no longer than a request it then waits for a sandbox.
	Direct bool
}

// ExecuteEvent is Execute for an event that may be delivered again. The error
// is ErrDelivered when another delivery has begun it. Its program must
// not run twice: where the memory for its result is used up while it runs, it
// goes on, and the result says what it lacks.
func (e *Executor) ExecuteEvent(ctx context.Context, id string, event Event, p *execution.Program) (*execution.Result, error) {
	line := queue{seconds(e.limits.EventQueueSeconds), "event_queue_seconds"}
	if event.Direct {
		line = e.queue()
	}
	return e.measure(ctx, request{
		id: id, event: event.Key, program: p, queue: line, capture: event.AnswerBytes, lossy: true,
	}, nil)
}

// request is what is to be executed.
type request struct {
	id, event string
	program   *execution.Program
	queue     queue
	// capture bounds what is captured of each kind, if not 0.
	capture int64
	// lossy leaves out of the result what there is no memory for.
	lossy bool
	// turn is the sandbox of a session, for a run in it; others claim theirs.
	turn *turn
}

// queue is how long an execution waits for a sandbox.
type queue struct {
	time time.Duration
	// limit is its name among the server's limits.
	limit string
}

// queue is that of requests.
func (e *Executor) queue() queue { return queue{seconds(e.limits.QueueSeconds), "queue_seconds"} }

// reserved is the memory that each execution has for its result from the
// start, so that little output always finds its place.
const reserved = 64 << 10

func (e *Executor) measure(ctx context.Context, r request, sink Sink) (*execution.Result, error) {
	began := time.Now()
	ctx, span := otel.Tracer(tracerName).Start(ctx, "execution", trace.WithAttributes(
		attribute.String("preheat.execution", r.id), attribute.String("preheat.language", r.program.Language)))
	defer span.End()
	e.metrics.inFlight.Inc()
	defer e.metrics.inFlight.Dec()
	result, err := e.execute(ctx, r, sink, began)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrDelivered) {
		result.Status = execution.StatusCancelled // the caller is gone: nothing failed
	}
	result.TimingsMS.Total = execution.Milliseconds(time.Since(began))
	if span.SetAttributes(attribute.String("preheat.status", string(result.Status))); err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	if !errors.Is(err, ErrDelivered) {
		e.report(r.id, r.program, result, err)
	}
	return result, err
}

func (e *Executor) execute(ctx context.Context, r request, sink Sink, began time.Time) (*execution.Result, error) {
	p := r.program
	runCtx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	c := newCollector(sink, nil, allowance(p.Limits, e.limits), began)
	c.abort, c.lossy = abort, r.lossy
	var err error
	if c.memory, err = reserve(ctx, p, sink); err != nil {
		return &c.result, e.runProblem(ctx, r.id, err)
	}
	timeout := seconds(p.Limits.TimeoutSeconds)
	sandbox, err := e.sandbox(ctx, r, pool.Claim{
		Language: p.Language, Pool: p.Pool, ID: r.id, Event: r.event, Memory: e.memory(p), Deadline: began.Add(r.queue.time + timeout + 2*overtime),
	})
	claimed := time.Now()
	if err != nil {
		return &c.result, err
	}
	defer func() { e.pace.note(sandbox.Pool(), time.Since(claimed)) }()
	defer sandbox.Release()
	c.claimed(sandbox, claimed)

	runCtx, cancel := context.WithTimeoutCause(runCtx, timeout+overtime, errOvertime)
	defer cancel()
	if r.lossy {
		// What arrives is bounded by its limits, and left out by the collector.
		var unbounded *budget.Budget
		runCtx = budget.With(runCtx, unbounded.Open())
	}
	outcome, err := sandbox.Run(runCtx, e.run(r, timeout), c)
	if own := context.Cause(runCtx); ctx.Err() == nil && own != nil &&
		(err == nil && outcome.Status == execution.StatusCancelled || errors.Is(own, errExcess) || errors.Is(own, budget.ErrFull)) {
		// The platform ended the program, whatever the runner still reported.
		err = own
	}
	switch {
	case err == nil:
		c.finish(outcome)
		return &c.result, nil
	case ctx.Err() != nil && c.started:
		c.finish(pool.Outcome{Status: execution.StatusCancelled, ExitCode: 137, Signal: "SIGKILL", Run: time.Since(claimed)})
		return &c.result, nil
	}
	c.finish(pool.Outcome{Status: execution.StatusPlatformError, Run: time.Since(claimed)})
	return &c.result, e.runProblem(ctx, r.id, err)
}

// reserve takes the memory for a program, which is held as it came and as it is
// sent to the sandbox, and for a small result. A sink has its own for that.
func reserve(ctx context.Context, p *execution.Program, sink Sink) (*budget.Reserve, error) {
	size := int64(len(p.Code) + len(p.Stdin))
	for _, f := range p.Files {
		size += int64(len(f.Path) + len(f.Content))
	}
	if err := budget.Take(ctx, 2*size); err != nil {
		return nil, err
	}
	if sink != nil {
		return budget.NewReserve(ctx, 0)
	}
	return budget.NewReserve(ctx, reserved)
}

// sandbox is where r runs: its session's, or one that is claimed for it.
func (e *Executor) sandbox(ctx context.Context, r request, want pool.Claim) (pool.Sandbox, error) {
	if r.turn != nil {
		return r.turn, nil
	}
	return e.claim(ctx, want, r.queue)
}

// claim waits for a sandbox for as long as the queue allows.
func (e *Executor) claim(ctx context.Context, want pool.Claim, q queue) (pool.Sandbox, error) {
	waiting, cancel := context.WithTimeout(ctx, q.time)
	defer cancel()
	sandbox, err := e.pool.Claim(waiting, want)
	if err == nil {
		return sandbox, nil
	}
	if errors.Is(err, ErrDelivered) {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, gone(ctx)
	}
	return nil, e.claimProblem(want, q, err)
}

func (e *Executor) claimProblem(want pool.Claim, q queue, err error) *execution.Problem {
	var problem *execution.Problem
	var invalid *pool.InvalidError
	switch {
	case errors.As(err, &invalid):
		problem = invalidProblem(invalid)
	case errors.Is(err, pool.ErrNoSandbox):
		waiting, retryAfter := e.line(want)
		problem = execution.NewProblem(execution.ProblemNoSandbox, "All sandboxes for %s are in use; none became free within %g seconds (%s). Waiting now: %d.", want.Language, q.time.Seconds(), q.limit, waiting)
		problem.Waiting, problem.RetryAfterSeconds = &waiting, retryAfter
	case errors.Is(err, pool.ErrOverQuota):
		problem = execution.NewProblem(execution.ProblemOverQuota, "The cluster's quota does not allow another sandbox for now.")
		problem.RetryAfterSeconds = 5
	case errors.Is(err, pool.ErrUnknownPool):
		problem = execution.NewProblem(execution.ProblemNotFound, "There is no pool %q.", want.Pool)
		problem.Field = "pool"
	case errors.Is(err, pool.ErrUnknownLanguage):
		problem = execution.NewProblem(execution.ProblemNotFound, "The pool does not offer the language %q.", want.Language)
		problem.Field = "language"
	case errors.Is(err, pool.ErrClosed):
		problem = execution.NewProblem(execution.ProblemNotReady, "The pool is shutting down or cannot make sandboxes for now.")
		problem.RetryAfterSeconds = 1
	default:
		e.log.Error("A claim failed", "execution", want.ID, "error", err)
		problem = execution.NewProblem(execution.ProblemInternal, "No sandbox could be claimed.")
	}
	return problem
}

var errOvertime = errors.New("the sandbox did not report in time")

func (e *Executor) runProblem(ctx context.Context, id string, err error) *execution.Problem {
	var invalid *pool.InvalidError
	switch {
	case ctx.Err() != nil:
		return gone(ctx)
	case errors.Is(err, budget.ErrFull):
		return NoMemory()
	case errors.As(err, &invalid):
		return invalidProblem(invalid)
	case errors.Is(err, errOvertime):
		return execution.NewProblem(execution.ProblemDeadline, "The sandbox did not report within %s after the program's deadline.", overtime)
	case errors.Is(err, errExcess):
		e.log.Error("A sandbox broke its limits", "execution", id)
		return execution.NewProblem(execution.ProblemSandboxLost, "The sandbox was ended: it sent more than it may.")
	case errors.Is(err, pool.ErrSandboxLost):
		return execution.NewProblem(execution.ProblemSandboxLost, "The sandbox ended before it reported how the program ended.")
	}
	if problem := sessionProblem(err); problem != nil {
		return problem
	}
	e.log.Error("A run failed", "execution", id, "error", err)
	return execution.NewProblem(execution.ProblemInternal, "The sandbox failed to run the program.")
}

func invalidProblem(err *pool.InvalidError) *execution.Problem {
	return execution.Invalid(err.Field, "The sandbox cannot run this: %s.", err.Detail)
}

// NoMemory is the problem of an execution for whose result the process has no
// memory.
func NoMemory() *execution.Problem {
	problem := execution.NewProblem(execution.ProblemNotReady, "The server has no memory left for the results of programs.")
	problem.RetryAfterSeconds = 1
	return problem
}

// gone is the problem of an execution whose caller no longer waits for it.
func gone(ctx context.Context) *execution.Problem {
	return execution.NewProblem(execution.ProblemNotReady, "The execution was abandoned: %s.", context.Cause(ctx))
}

// memory is the memory that p asks for, 0 if it is what sandboxes have anyway.
func (e *Executor) memory(p *execution.Program) int64 {
	if p.Limits.MemoryBytes == e.limits.Default.MemoryBytes {
		return 0
	}
	return p.Limits.MemoryBytes
}

// run is what the runner is asked to do.
func (e *Executor) run(req request, timeout time.Duration) pool.Run {
	p := req.program
	bound := func(n int64) int64 {
		if req.capture == 0 {
			return n
		}
		return min(n, req.capture)
	}
	r := pool.Run{
		Language: p.Language, Code: p.Code, Stdin: p.Stdin, Args: p.Args, Env: p.Env,
		Limits: pool.Limits{
			Timeout: timeout, Output: bound(p.Limits.OutputBytes), TotalOutput: p.Limits.TotalOutputBytes,
			Artifacts: e.limits.Artifacts, ArtifactBytes: bound(e.limits.ArtifactBytes),
			Results: e.limits.Results, ResultBytes: bound(e.limits.ResultBytes),
			Memory: e.memory(p),
		},
	}
	for _, f := range p.Files {
		r.Files = append(r.Files, pool.File{Path: f.Path, Content: f.Content})
	}
	return r
}

func (e *Executor) report(id string, p *execution.Program, r *execution.Result, err error) {
	e.metrics.observe(p.Language, r, err)
	attrs := []any{
		"execution", id, "language", p.Language, "sandbox", r.SandboxName, "status", r.Status, "exit_code", r.ExitCode,
		"queue_ms", r.TimingsMS.Queue, "run_ms", r.TimingsMS.Run, "total_ms", r.TimingsMS.Total,
	}
	switch {
	case err != nil && r.Status == execution.StatusCancelled:
		e.log.Info("Execution abandoned before it began", append(attrs, "why", fmt.Sprint(err))...)
		return
	case err != nil:
		e.log.Warn("Execution failed", append(attrs, "error", fmt.Sprint(err))...)
		return
	}
	e.log.Info("Execution ended", attrs...)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
