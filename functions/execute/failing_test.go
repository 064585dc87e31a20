package execute_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// failing is a pool whose claims and runs end as a test wants them to, which
// real sandboxes do not.
type failing struct {
	claim func(context.Context, pool.Claim) error
	run   func(context.Context, pool.Run, pool.Sink) (pool.Outcome, error)

	status []execution.PoolStatus

	mu       sync.Mutex
	claims   []pool.Claim
	released int
}

func (f *failing) Claim(ctx context.Context, want pool.Claim) (pool.Sandbox, error) {
	f.mu.Lock()
	f.claims = append(f.claims, want)
	f.mu.Unlock()
	if f.claim != nil {
		if err := f.claim(ctx, want); err != nil {
			return nil, err
		}
	}
	return &failingSandbox{f}, nil
}

func (*failing) Languages() []execution.Language {
	return []execution.Language{{Name: "python", Aliases: []string{"py"}, Pools: []string{"main"}}, {Name: "ruby", Aliases: []string{"rb"}, Pools: []string{"main"}}}
}
func (f *failing) Status() []execution.PoolStatus { return f.status }
func (*failing) Changed() <-chan struct{}         { return nil }
func (*failing) Ready() error                     { return nil }

type failingSandbox struct{ pool *failing }

func (*failingSandbox) Name() string { return "main-1" }
func (*failingSandbox) Pool() string { return "main" }
func (*failingSandbox) Queued() bool { return false }

func (s *failingSandbox) Run(ctx context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
	return s.pool.run(ctx, run, sink)
}

func (s *failingSandbox) Release() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.released++
}

// until fails when ctx ends, as a pool and a sandbox do.
func until(ctx context.Context, err error) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", err, context.Cause(ctx))
}

type executor struct {
	*execute.Executor
	pool    *failing
	metrics *prometheus.Registry
}

func newExecutor(f *failing) executor { return newExecutorWithin(f, execution.DefaultLimits()) }

func newExecutorWithin(f *failing, limits execution.ServerLimits) executor {
	r := prometheus.NewRegistry()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return executor{execute.New(f, limits, execute.NewMetrics(r), log), f, r}
}

func (e executor) program(t *testing.T, r execution.Request) *execution.Program {
	t.Helper()
	p, problem := e.Check(&r)
	if problem != nil {
		t.Fatal(problem)
	}
	return p
}

func hello() execution.Request {
	return execution.Request{Language: "py", Code: "print(1)", Limits: execution.Limits{TimeoutSeconds: 2}}
}

func (e executor) checkReleased(t *testing.T, want int) {
	t.Helper()
	if e.pool.released != want {
		t.Errorf("released %d times instead of %d", e.pool.released, want)
	}
	counted := 0.0
	families, err := e.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			switch family.GetName() {
			case "preheat_executions_total", "preheat_execution_problems_total":
				counted += m.GetCounter().GetValue()
			case "preheat_executions_in_flight":
				if n := m.GetGauge().GetValue(); n != 0 {
					t.Errorf("%v executions are still in flight", n)
				}
			}
		}
	}
	if counted != 1 {
		t.Errorf("the metrics count %v executions", counted)
	}
}

// checkCancelled: the caller's leaving is no failure of the platform's.
func (e executor) checkCancelled(t *testing.T, r *execution.Result) {
	t.Helper()
	if r.Status != execution.StatusCancelled {
		t.Errorf("%+v", r)
	}
	families, err := e.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "preheat_execution_problems_total" && len(family.GetMetric()) > 0 {
			t.Errorf("%v", family)
		}
	}
}

// sink counts what it is given.
type sink struct {
	starts, results, artifacts int
	bytes                      int64
	refuses                    error
}

func (s *sink) Start(string) { s.starts++ }
func (s *sink) Output(_ execution.Stream, data []byte, _ int64) error {
	s.bytes += int64(len(data))
	return s.refuses
}
func (s *sink) Result(execution.RichResult) error { s.results++; return nil }
func (s *sink) Artifact(execution.Artifact) error { s.artifacts++; return nil }
