package execute

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/language"
)

// Session is an open session. It is the one entry point for what happens in it.
// The errors of its methods are *execution.Problem.
type Session struct {
	executor *Executor
	session  pool.Session
}

// CheckSession returns the session that r asks for, or a problem about r.
func (e *Executor) CheckSession(r *execution.SessionRequest) (*execution.SessionSpec, *execution.Problem) {
	spec, problem := r.Validate(e.Languages(), e.limits)
	if problem != nil {
		return nil, problem
	}
	if l, ok := language.Find(spec.Language); !ok || len(l.Session) == 0 {
		return nil, execution.Invalid("language", "There are no sessions of %s: its programs keep nothing for one another.", spec.Language)
	}
	return spec, nil
}

// OpenSession opens a session. id names the request in logs.
func (e *Executor) OpenSession(ctx context.Context, id string, spec *execution.SessionSpec) (*Session, error) {
	if e.sessions == nil {
		return nil, noSessions()
	}
	line := e.queue()
	waiting, cancel := context.WithTimeout(ctx, line.time)
	defer cancel()
	want := pool.SessionClaim{
		Claim:   pool.Claim{Language: spec.Language, Pool: spec.Pool, ID: id, Deadline: time.Now().Add(spec.Lifetime)},
		Session: execution.NewSessionID(), Idle: spec.Idle,
	}
	for _, f := range spec.Files {
		want.Files = append(want.Files, pool.File{Path: f.Path, Content: f.Content})
	}
	s, err := e.sessions.OpenSession(waiting, want)
	if err == nil {
		info := s.Info()
		e.log.Info("Session opened", "execution", id, "language", info.Language, "pool", info.Pool, "sandbox", info.Sandbox)
		return &Session{executor: e, session: s}, nil
	}
	if ctx.Err() != nil {
		return nil, gone(ctx)
	}
	if problem := sessionProblem(err); problem != nil {
		return nil, problem
	}
	if errors.Is(err, pool.ErrSandboxLost) {
		return nil, e.runProblem(ctx, id, err)
	}
	return nil, e.claimProblem(want.Claim, line, err)
}

// Session returns the session with this id.
func (e *Executor) Session(ctx context.Context, id string) (*Session, error) {
	if e.sessions == nil {
		return nil, noSessions()
	}
	s, err := e.sessions.Session(ctx, id)
	if err != nil {
		return nil, e.sessionError(ctx, err)
	}
	return &Session{executor: e, session: s}, nil
}

// Sessions lists the open sessions, without their ids.
func (e *Executor) Sessions(ctx context.Context) ([]execution.SessionEntry, error) {
	if e.sessions == nil {
		return nil, noSessions()
	}
	open, err := e.sessions.Sessions(ctx)
	if err != nil {
		return nil, e.sessionError(ctx, err)
	}
	list := make([]execution.SessionEntry, len(open))
	for i, s := range open {
		list[i] = execution.SessionEntry{
			Language: s.Language, Pool: s.Pool, SandboxName: s.Sandbox, OpenedAt: s.Opened, ExpiresAt: s.Expires, IdleSeconds: s.Idle.Seconds(),
		}
	}
	return list, nil
}

// EndSession ends a session and everything in it.
func (e *Executor) EndSession(ctx context.Context, id string) error {
	if e.sessions == nil {
		return noSessions()
	}
	return e.sessionError(ctx, e.sessions.EndSession(ctx, id))
}

// Describe returns the session as its owner sees it.
func (s *Session) Describe(ctx context.Context) (*execution.Session, error) {
	status, err := s.session.Status(ctx)
	if err != nil {
		return nil, s.executor.sessionError(ctx, err)
	}
	info := s.session.Info()
	d := &execution.Session{
		ID: info.ID, Language: info.Language, Pool: info.Pool, SandboxName: info.Sandbox, OpenedAt: info.Opened, ExpiresAt: info.Expires,
		IdleSeconds: info.Idle.Seconds(), IdleLeftSeconds: max(status.IdleLeft, 0).Seconds(), Sequence: status.Sequence,
	}
	if status.Running != "" {
		d.Running = &status.Running
	}
	return d, nil
}

// Check returns the program that r asks for, or a problem about r.
func (s *Session) Check(r *execution.Request) (*execution.Program, *execution.Problem) {
	info := s.session.Info()
	return r.ValidateIn(info.Language, info.Pool, s.executor.Languages(), s.executor.limits)
}

// Execute runs p in the session, with the promises of Executor.Execute. When
// ctx ends, the program is interrupted, and the session stays.
func (s *Session) Execute(ctx context.Context, id string, p *execution.Program, sink Sink) (*execution.SessionResult, error) {
	t := &turn{session: s.session, id: id}
	result, err := s.executor.measure(ctx, request{id: id, program: p, turn: t}, sink)
	if t.outcome.State != "" {
		s.executor.metrics.runs.WithLabelValues(p.Language, string(t.outcome.State)).Inc()
	}
	return &execution.SessionResult{Result: *result, State: t.outcome.State, Sequence: t.outcome.Sequence}, err
}

// turn is a session's sandbox for one run.
type turn struct {
	session pool.Session
	id      string
	outcome pool.SessionOutcome
}

var _ pool.Sandbox = (*turn)(nil)

// Name implements pool.Sandbox.
func (t *turn) Name() string { return t.session.Info().Sandbox }

// Pool implements pool.Sandbox.
func (t *turn) Pool() string { return t.session.Info().Pool }

// Queued implements pool.Sandbox.
func (t *turn) Queued() bool { return false }

// Run implements pool.Sandbox.
func (t *turn) Run(ctx context.Context, run pool.Run, sink pool.Sink) (pool.Outcome, error) {
	var err error
	t.outcome, err = t.session.Run(ctx, t.id, run, sink)
	return t.outcome.Outcome, err
}

// Release implements pool.Sandbox: the session keeps it.
func (t *turn) Release() {}

// Interrupt interrupts the run that goes on.
func (s *Session) Interrupt(ctx context.Context) error {
	return s.executor.sessionError(ctx, s.session.Interrupt(ctx))
}

// Files lists the files of the session's folder.
func (s *Session) Files(ctx context.Context) (*execution.SessionFileList, error) {
	files, more, err := s.session.Files(ctx, s.executor.limits.Sessions.Listed)
	if err != nil {
		return nil, s.executor.sessionError(ctx, err)
	}
	list := &execution.SessionFileList{Files: make([]execution.SessionFile, len(files)), More: more}
	for i, f := range files {
		list.Files[i] = describe(f)
	}
	return list, nil
}

// Open returns a file's state and its content from offset on, at most length
// bytes of it, or all if length is negative. The caller closes it.
func (s *Session) Open(ctx context.Context, path string, offset, length int64) (execution.SessionFile, io.ReadCloser, error) {
	f, content, err := s.session.Open(ctx, path, offset, length)
	return describe(f), content, s.executor.sessionError(ctx, err)
}

// Archive returns a tar archive of the session's folder or of one below it. The
// caller closes it.
func (s *Session) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	archive, err := s.session.Archive(ctx, path)
	return archive, s.executor.sessionError(ctx, err)
}

// Write makes the file at path hold content, and reports whether there was none
// before.
func (s *Session) Write(ctx context.Context, path string, content io.Reader) (execution.SessionFile, bool, error) {
	f, created, err := s.session.Write(ctx, path, content)
	return describe(f), created, s.executor.sessionError(ctx, err)
}

// Remove removes a file, or a folder and what is in it.
func (s *Session) Remove(ctx context.Context, path string) error {
	return s.executor.sessionError(ctx, s.session.Remove(ctx, path))
}

func describe(f pool.SessionFile) execution.SessionFile {
	return execution.SessionFile{Path: f.Path, Size: f.Size, ModifiedAt: f.Modified, ETag: f.ETag}
}

// sessionError is the problem that err means to a caller, nil if err is.
func (e *Executor) sessionError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var invalid *pool.InvalidError
	if errors.As(err, &invalid) {
		return execution.Invalid(invalid.Field, "The session cannot do this: %s.", invalid.Detail)
	}
	if problem := sessionProblem(err); problem != nil {
		return problem
	}
	return e.runProblem(ctx, "", err)
}

func noSessions() *execution.Problem {
	return execution.NewProblem(execution.ProblemNoSessions, "The server's pools keep no sessions.")
}

// sessionProblem is the problem of an error about sessions, nil if err is
// another one.
func sessionProblem(err error) *execution.Problem {
	var problem *execution.Problem
	var ended *pool.SessionEndedError
	var busy *pool.BusyError
	switch {
	case errors.As(err, &problem):
	case errors.As(err, &ended):
		problem = execution.NewProblem(execution.ProblemSessionEnded, "The session has ended: %s.", reason(ended.Reason))
		problem.Reason = ended.Reason
	case errors.As(err, &busy):
		problem = execution.NewProblem(execution.ProblemSessionBusy, "Execution %s runs in the session.", busy.Running)
		problem.Running = busy.Running
	case errors.Is(err, pool.ErrNoSession):
		problem = execution.NewProblem(execution.ProblemNotFound, "There is no such session.")
	case errors.Is(err, pool.ErrNoSessions):
		problem = noSessions()
	case errors.Is(err, pool.ErrTooManySessions):
		problem = execution.NewProblem(execution.ProblemTooManySessions, "As many sessions are open as there may be; /v1/limits says how many.")
		problem.RetryAfterSeconds = 5
	case errors.Is(err, pool.ErrNoFile):
		problem = execution.NewProblem(execution.ProblemNotFound, "There is no such file in the session.")
		problem.Field = "path"
	case errors.Is(err, pool.ErrNothingRuns):
		problem = execution.NewProblem(execution.ProblemNothingRuns, "Nothing runs in the session.")
	}
	return problem
}

func reason(end execution.SessionEnd) string {
	switch end {
	case execution.SessionClosed:
		return "its caller closed it"
	case execution.SessionIdle:
		return "it was not used for too long"
	case execution.SessionExpired:
		return "its lifetime was over"
	case execution.SessionShutdown:
		return "the server was shut down"
	}
	return "its sandbox is gone"
}
