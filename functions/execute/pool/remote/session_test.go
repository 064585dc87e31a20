package remote_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/yamux"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/remote"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// share opens a session whose runner serves each operation by serve, and returns
// it with what ends the runner's side.
func share(t *testing.T, serve func(*wire.Server, wire.Operation)) (*remote.Session, *remote.Mux, func()) {
	t.Helper()
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	ready := make(chan *yamux.Session, 1)
	go func() {
		defer close(ended)
		s := wire.NewServer(theirs)
		if err := accept(s, func(op wire.Operation) error {
			run, err := s.ReadRun()
			if op.Kind != wire.OperationOpen || run.Language != "python" || len(run.Files) != 1 {
				t.Errorf("%+v opens with %+v", op, run)
			}
			return errors.Join(err, s.Reply(wire.Reply{}))
		}); err != nil {
			t.Error(err)
		}
		mux, err := yamux.Server(theirs, nil)
		ready <- mux
		for err == nil {
			var conn net.Conn
			if conn, err = mux.Accept(); err != nil {
				return
			}
			s := wire.NewServer(conn)
			_ = accept(s, func(op wire.Operation) error { serve(s, op); return nil })
			_ = conn.Close()
		}
	}()
	want := pool.SessionClaim{Claim: pool.Claim{Language: "python"}, Session: "id", Files: []pool.File{{Path: "a"}}}
	if err := remote.Open(t.Context(), wire.NewClient(ours, ""), want); err != nil {
		t.Fatal(err)
	}
	mux, err := remote.Multiplex(ours, "")
	if err != nil {
		t.Fatal(err)
	}
	theirMux := <-ready
	t.Cleanup(func() { _ = mux.Close(); <-ended })
	return remote.NewSession(pool.SessionInfo{ID: "id", Sandbox: "s"}, mux), mux, func() { _ = theirMux.Close() }
}

func accept(s *wire.Server, serve func(wire.Operation) error) error {
	if err := s.Ready(); err != nil {
		return err
	}
	if _, err := s.Hello(); err != nil {
		return err
	}
	op, err := s.ReadOperation()
	if err != nil {
		return err
	}
	return serve(op)
}

type nothing struct{}

func (nothing) Started()                               {}
func (nothing) Output(execution.Stream, []byte, int64) {}
func (nothing) Result(execution.RichResult)            {}
func (nothing) Artifact(execution.Artifact)            {}

func TestOperations(t *testing.T) {
	s, _, _ := share(t, func(s *wire.Server, op wire.Operation) {
		if op.Session != "id" {
			t.Errorf("%+v", op)
		}
		switch op.Kind {
		case wire.OperationRun:
			run, _ := s.ReadRun()
			_ = s.Started()
			_ = s.SessionExit(wire.SessionOutcome{Outcome: wire.Outcome{Status: execution.StatusSucceeded, ExitCode: len(run.Code)}, State: execution.SessionKept, Sequence: 2})
		case wire.OperationStatus:
			_ = s.Reply(wire.Reply{Running: "e", Sequence: 2})
		case wire.OperationList:
			for range 3 {
				_ = s.File(wire.SessionFile{Path: "a"})
			}
			_ = s.Reply(wire.Reply{More: true})
		case wire.OperationRead:
			_ = s.File(wire.SessionFile{Path: op.Path, Size: op.Offset})
			_ = s.Send(strings.NewReader("text"), 4)
		case wire.OperationArchive:
			_ = s.Send(strings.NewReader("tar"), 3)
		case wire.OperationWrite:
			text, _ := io.ReadAll(s.Received())
			_ = s.File(wire.SessionFile{Path: op.Path, Size: int64(len(text))})
			_ = s.Reply(wire.Reply{Created: true})
		default:
			_ = s.Reply(wire.Reply{})
		}
	})
	ctx := t.Context()
	if o, err := s.Run(ctx, "e", pool.Run{Code: []byte("123")}, nothing{}); err != nil || o.ExitCode != 3 || o.State != execution.SessionKept || o.Sequence != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	if st, err := s.Status(ctx); err != nil || st.Running != "e" || st.Sequence != 2 {
		t.Errorf("%+v, %v", st, err)
	}
	if files, more, err := s.Files(ctx, 2); err != nil || len(files) != 2 || !more {
		t.Errorf("%+v, %v, %v", files, more, err)
	}
	f, r, err := s.Open(ctx, "p", 7, -1)
	if err != nil || f.Size != 7 {
		t.Fatal(f, err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "text" || r.Close() != nil {
		t.Errorf("%q, %v", text, err)
	}
	if r, err = s.Archive(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "tar" || r.Close() != nil {
		t.Errorf("%q, %v", text, err)
	}
	if f, created, err := s.Write(ctx, "p", strings.NewReader("12345")); err != nil || !created || f.Size != 5 {
		t.Errorf("%+v, %v, %v", f, created, err)
	}
	if err := errors.Join(s.Remove(ctx, "p"), s.Interrupt(ctx), s.End(ctx)); err != nil {
		t.Error(err)
	}
}

// TestFailuresAreThePools: what a runner refuses is what callers of pools know.
func TestFailuresAreThePools(t *testing.T) {
	var failure wire.Failure
	s, _, _ := share(t, func(s *wire.Server, _ wire.Operation) { _ = s.Fail(&failure) })
	var ended *pool.SessionEndedError
	var busy *pool.BusyError
	var invalid *pool.InvalidError
	for _, test := range []struct {
		failure wire.Failure
		is      func(error) bool
	}{
		{wire.Failure{Code: wire.FailureSession, Detail: "idle"}, func(err error) bool {
			return errors.As(err, &ended) && ended.Reason == execution.SessionIdle
		}},
		{wire.Failure{Code: wire.FailureBusy, Detail: "e"}, func(err error) bool { return errors.As(err, &busy) && busy.Running == "e" }},
		{wire.Failure{Code: wire.FailureNothingRuns}, func(err error) bool { return errors.Is(err, pool.ErrNothingRuns) }},
		{wire.Failure{Code: wire.FailureNoFile}, func(err error) bool { return errors.Is(err, pool.ErrNoFile) }},
		{wire.Failure{Code: wire.FailureInvalid, Detail: "d", Field: "path"}, func(err error) bool {
			return errors.As(err, &invalid) && *invalid == pool.InvalidError{Field: "path", Detail: "d"}
		}},
		{wire.Failure{Code: wire.FailureInternal}, func(err error) bool { return err != nil && !errors.Is(err, pool.ErrSandboxLost) }},
	} {
		failure = test.failure
		if _, err := s.Status(t.Context()); !test.is(err) {
			t.Errorf("%s: %v", failure.Code, err)
		}
	}
}

// TestConnectionEnds: with the connection the sandbox is lost, for what goes on
// and for what comes after.
func TestConnectionEnds(t *testing.T) {
	running := make(chan struct{})
	s, mux, end := share(t, func(s *wire.Server, op wire.Operation) {
		if op.Kind == wire.OperationRun {
			_, _ = s.ReadRun()
			close(running)
			s.AwaitEnd()
		}
	})
	go func() { <-running; end() }()
	if _, err := s.Run(t.Context(), "e", pool.Run{}, nothing{}); !errors.Is(err, pool.ErrSandboxLost) {
		t.Errorf("the run: %v", err)
	}
	<-mux.Done()
	var over *pool.SessionEndedError
	if _, err := s.Status(t.Context()); !errors.As(err, &over) {
		t.Errorf("after it: %v", err)
	}
}

// TestContextEndsAnOperation: nobody waits for a runner that does not answer.
func TestContextEndsAnOperation(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{})
	s, _, _ := share(t, func(*wire.Server, wire.Operation) { close(asked); <-release })
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := s.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
