package execute_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// keeping is a pool that keeps one session, or fails with err.
type keeping struct {
	pool.Pool
	session pool.Session
	err     error
	opened  pool.SessionClaim
}

func (*keeping) Languages() []execution.Language {
	return []execution.Language{{Name: "python", Pools: []string{"small"}}, {Name: "ruby", Aliases: []string{"rb"}, Pools: []string{"small"}}}
}

func (k *keeping) OpenSession(_ context.Context, want pool.SessionClaim) (pool.Session, error) {
	k.opened = want
	return k.session, k.err
}
func (k *keeping) Session(context.Context, string) (pool.Session, error) { return k.session, k.err }
func (k *keeping) Sessions(context.Context) ([]pool.SessionInfo, error) {
	return []pool.SessionInfo{{ID: "secret", Pool: "small"}}, k.err
}
func (k *keeping) EndSession(context.Context, string) error { return k.err }
func (*keeping) Status() []execution.PoolStatus             { return nil }

// scripted is a session whose runs end as outcome and err say.
type scripted struct {
	pool.Session
	id      string
	outcome pool.SessionOutcome
	err     error
}

func (s *scripted) Info() pool.SessionInfo {
	return pool.SessionInfo{ID: s.id, Language: "python", Pool: "small", Sandbox: "small-1"}
}

func (s *scripted) Run(_ context.Context, _ string, _ pool.Run, sink pool.Sink) (pool.SessionOutcome, error) {
	if s.err == nil {
		sink.Started()
		sink.Output(execution.Stdout, []byte("hello"), 0)
	}
	return s.outcome, s.err
}

func (s *scripted) Open(context.Context, string, int64, int64) (pool.SessionFile, io.ReadCloser, error) {
	return pool.SessionFile{}, nil, s.err
}

const anID = "abcdefghijklmnopqrstuvwxyz"

func keepingExecutor(p pool.Pool) *execute.Executor {
	return execute.New(p, execution.DefaultLimits(), execute.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}

// A run in a session has what a single one has, and says what was kept (I13).
func TestRunInSessionSaysWhatWasKept(t *testing.T) {
	s := &scripted{id: anID, outcome: pool.SessionOutcome{
		Outcome: pool.Outcome{Status: execution.StatusSucceeded}, State: execution.SessionKept, Sequence: 7,
	}}
	e := keepingExecutor(&keeping{session: s})
	session, err := e.Session(t.Context(), anID)
	if err != nil {
		t.Fatal(err)
	}
	p, problem := session.Check(&execution.Request{Code: "print('hello')"})
	if problem != nil {
		t.Fatal(problem)
	}
	r, err := session.Execute(t.Context(), "run-1", p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stdout != "hello" || r.State != execution.SessionKept || r.Sequence != 7 || r.SandboxName != "small-1" || r.Status != execution.StatusSucceeded {
		t.Errorf("the result is %+v", r)
	}
}

// Each way in which a session cannot serve is a problem of its own.
func TestSessionProblems(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		kind   execution.ProblemType
	}{
		{pool.ErrNoSession, http.StatusNotFound, execution.ProblemNotFound},
		{&pool.SessionEndedError{Reason: execution.SessionIdle}, http.StatusGone, execution.ProblemSessionEnded},
		{&pool.BusyError{Running: "other"}, http.StatusConflict, execution.ProblemSessionBusy},
		{pool.ErrNoSessions, http.StatusNotImplemented, execution.ProblemNoSessions},
		{pool.ErrTooManySessions, http.StatusTooManyRequests, execution.ProblemTooManySessions},
		{pool.ErrNoSandbox, http.StatusTooManyRequests, execution.ProblemNoSandbox},
		{pool.ErrClosed, http.StatusServiceUnavailable, execution.ProblemNotReady},
		{pool.ErrSandboxLost, http.StatusBadGateway, execution.ProblemSandboxLost},
	} {
		t.Run(test.err.Error(), func(t *testing.T) {
			_, err := keepingExecutor(&keeping{err: test.err}).OpenSession(t.Context(), "request", &execution.SessionSpec{Language: "python", Idle: time.Minute, Lifetime: time.Hour})
			var problem *execution.Problem
			if !errors.As(err, &problem) || problem.Status != test.status || !problem.IsKind(test.kind) {
				t.Fatalf("the problem is %+v", err)
			}
			if test.kind == execution.ProblemSessionEnded && problem.Reason != execution.SessionIdle {
				t.Errorf("the reason is %q", problem.Reason)
			}
			if test.kind == execution.ProblemSessionBusy && problem.Running != "other" {
				t.Errorf("what runs is %q", problem.Running)
			}
		})
	}
}

// A pool may offer a language that keeps no sessions: it is refused by its name.
func TestLanguageWithoutSessions(t *testing.T) {
	e := keepingExecutor(&keeping{})
	if _, problem := e.CheckSession(&execution.SessionRequest{Language: "python"}); problem != nil {
		t.Errorf("python: %v", problem)
	}
	_, problem := e.CheckSession(&execution.SessionRequest{Language: "RB"})
	if problem == nil || problem.Status != http.StatusUnprocessableEntity || problem.Field != "language" {
		t.Errorf("ruby: %+v", problem)
	}
}

func TestPoolWithoutSessions(t *testing.T) {
	_, err := keepingExecutor(struct{ pool.Pool }{}).Session(t.Context(), anID)
	var problem *execution.Problem
	if !errors.As(err, &problem) || !problem.IsKind(execution.ProblemNoSessions) {
		t.Errorf("the problem is %v", err)
	}
}

// A session of another id is nobody's to use, whatever a pool returns (I13),
// and no path that leaves the folder reaches a sandbox.
func TestGuardHoldsPoolAndCallersToTheContract(t *testing.T) {
	e := keepingExecutor(&keeping{session: &scripted{id: "zzzzzzzzzzzzzzzzzzzzzzzzzz"}})
	if _, err := e.Session(t.Context(), anID); err == nil {
		t.Error("a session of another id was handed out")
	}
	e = keepingExecutor(&keeping{session: &scripted{id: anID, err: errors.New("it was reached")}})
	s, err := e.Session(t.Context(), anID)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "../x", "/etc/passwd", "a/../../b"} {
		_, _, err := s.Open(t.Context(), path, 0, -1)
		var problem *execution.Problem
		if !errors.As(err, &problem) || problem.Field != "path" {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// A list of sessions lets nobody into them.
func TestListsHaveNoIDs(t *testing.T) {
	list, err := keepingExecutor(&keeping{}).Sessions(t.Context())
	if err != nil || len(list) != 1 || list[0].Pool != "small" {
		t.Errorf("%+v, %v", list, err)
	}
}
