package pooltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

var roomySessions = []row{
	{"a session keeps what its runs leave", sessionKeeps},
	{"sessions have sandboxes of their own", sessionsAreApart},
	{"a session runs one program at a time", sessionIsBusy},
	{"an interrupt ends a run and keeps the state", sessionInterrupt},
	{"a run in a session ends at its time limit and keeps the state", sessionTimeout},
	{"a program that takes no interrupt loses the state and no files", sessionLosesState},
	{"a run whose caller goes away ends and the session stays", sessionOutlivesCaller},
	{"a closed session ends", sessionCloses},
	{"a session that is not used ends", sessionIdles},
	{"a session ends with its lifetime", sessionExpires},
	{"a session whose sandbox is lost has ended", sessionIsLost},
	{"no more sessions are open than may be", tooManySessions},
	{"an unknown session is refused", unknownSession},
	{"files go into a session and come out of it", sessionFiles},
	{"a file is written whole or not at all", sessionFileBreaksOff},
}

var narrowSessions = []row{
	{"a session that finds no sandbox ends no other one", sessionWaits},
}

// session is an open session that ends with its test.
type session struct {
	pool.Session
	id string
}

// sessions is the pool's part that keeps sessions.
func (s suite) sessions(t *testing.T) pool.Sessions {
	t.Helper()
	kept, ok := s.Pool.(pool.Sessions)
	if !ok {
		t.Fatal("the pool keeps no sessions")
	}
	return kept
}

// wantSession is a session that lasts longer than any test.
func wantSession() pool.SessionClaim {
	return pool.SessionClaim{Claim: want(), Session: execution.NewSessionID(), Idle: 2 * patience}
}

func (s suite) open(t *testing.T, want pool.SessionClaim) session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opened, err := s.sessions(t).OpenSession(ctx, want)
	if err != nil {
		t.Fatalf("open a session: %v", err)
	}
	t.Cleanup(func() {
		if err := s.sessions(t).EndSession(context.WithoutCancel(t.Context()), want.Session); err != nil {
			t.Errorf("end the session: %v", err)
		}
	})
	return session{opened, want.Session}
}

// cell runs Python code to its end, which must be that of a good program, and
// checks what it wrote and what became of the state.
func (s session) cell(t *testing.T, code, wrote string, state execution.SessionState, sequence int64) {
	t.Helper()
	sink := newRecord()
	outcome, err := s.Run(t.Context(), "cell", program(code), sink)
	if err != nil || outcome.Status != execution.StatusSucceeded || string(sink.out) != wrote || outcome.State != state || outcome.Sequence != sequence {
		t.Errorf("the run ended with %+v, %v; it wrote %q and %q instead of %q (%s, %d)", outcome, err, sink.out, sink.err, wrote, state, sequence)
	}
}

// sessionEnd is how a run in a session ended.
type sessionEnd struct {
	outcome pool.SessionOutcome
	err     error
}

// begin runs Python code, and returns when it has written something.
func (s session) begin(ctx context.Context, t *testing.T, id string, run pool.Run) <-chan sessionEnd {
	t.Helper()
	sink, end := newRecord(), make(chan sessionEnd, 1)
	go func() { // received by the test, or over when its session ends
		outcome, err := s.Run(ctx, id, run, sink)
		end <- sessionEnd{outcome, err}
	}()
	select {
	case <-sink.wrote:
	case e := <-end:
		t.Fatalf("the program ended at once: %+v", e)
	case <-time.After(patience):
		t.Fatal("the program does not start")
	}
	return end
}

// over checks that an error says why the session is over.
func over(t *testing.T, err error, reason execution.SessionEnd) {
	t.Helper()
	var ended *pool.SessionEndedError
	if !errors.As(err, &ended) || ended.Reason != reason {
		t.Errorf("the error is %v; the reason should be %s", err, reason)
	}
}

// ends waits until the pool says that the session is over, for this reason,
// and nothing of its sandbox is left.
func (s suite) ends(t *testing.T, open session, reason execution.SessionEnd) {
	t.Helper()
	s.gone(t, open.Info().Sandbox)
	s.until(t, "the session's sandbox is not in use", func(p execution.PoolStatus) bool { return p.Claimed == 0 })
	_, err := s.sessions(t).Session(t.Context(), open.id)
	over(t, err, reason)
	_, err = open.Status(t.Context())
	over(t, err, reason)
}

// I13: variables, files and folder stay from one run to the next, also for
// whoever has the session by its id alone; the first files are there.
func sessionKeeps(t *testing.T, s suite) {
	want := wantSession()
	want.Files = []pool.File{{Path: "data/in.txt", Content: []byte("given")}}
	opened := s.open(t, want)
	if info := opened.Info(); info.ID != want.Session || info.Language != "python" || info.Pool != s.status(t).Name || info.Sandbox == "" ||
		!info.Expires.Equal(want.Deadline) || info.Idle != want.Idle {
		t.Errorf("the session is %+v", info)
	}
	opened.cell(t, "x = open('data/in.txt').read(); open('out.txt', 'w').write(x)", "", execution.SessionFresh, 1)
	found, err := s.sessions(t).Session(t.Context(), want.Session)
	if err != nil {
		t.Fatal(err)
	}
	session{found, want.Session}.cell(t, "print(x, open('out.txt').read())", "given given\n", execution.SessionKept, 2)
	status, err := opened.Status(t.Context())
	if err != nil || status.Sequence != 2 || status.Running != "" || status.IdleLeft <= 0 || status.IdleLeft > want.Idle {
		t.Errorf("the status is %+v, %v", status, err)
	}
}

// I1, I2, I13: each session has a sandbox that nobody else has or had, and
// nothing of one is in another. Their sandboxes count as claimed.
func sessionsAreApart(t *testing.T, s suite) {
	used := map[string]bool{}
	const look = "import os; print(os.path.exists('secret'), 'secret' in globals()); secret = 1; open('secret', 'w').close()"
	for range s.sizes.Sessions {
		opened := s.open(t, wantSession())
		opened.cell(t, look, "False False\n", execution.SessionFresh, 1)
		if used[opened.Info().Sandbox] {
			t.Errorf("sandbox %s is two sessions'", opened.Info().Sandbox)
		}
		used[opened.Info().Sandbox] = true
	}
	if single := s.claim(t); used[single.Name()] {
		t.Errorf("sandbox %s is a session's and a single program's", single.Name())
	}
	s.until(t, "all are claimed", func(p execution.PoolStatus) bool { return p.Claimed == s.sizes.Sessions+1 })
	list, err := s.sessions(t).Sessions(t.Context())
	if err != nil || len(list) != s.sizes.Sessions {
		t.Errorf("the list is %+v, %v", list, err)
	}
	for i, info := range list {
		if !used[info.Sandbox] || i > 0 && info.Opened.Before(list[i-1].Opened) {
			t.Errorf("the list is %+v", list)
		}
	}
}

// A second run is refused while one goes on, and told which.
func sessionIsBusy(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	end := opened.begin(t.Context(), t, "first", program(endless))
	sink := newRecord()
	_, err := opened.Run(t.Context(), "second", program("print(1)"), sink)
	var busy *pool.BusyError
	if !errors.As(err, &busy) || busy.Running != "first" || sink.started > 0 {
		t.Errorf("the second run: %v", err)
	}
	if status, err := opened.Status(t.Context()); err != nil || status.Running != "first" {
		t.Errorf("the status is %+v, %v", status, err)
	}
	if err := opened.Interrupt(t.Context()); err != nil {
		t.Error(err)
	}
	if e := receive(t, "the run", end); e.err != nil || e.outcome.Sequence != 1 {
		t.Errorf("the first run ended with %+v", e)
	}
	opened.cell(t, "print(1)", "1\n", execution.SessionKept, 2)
}

func sessionInterrupt(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	check(t, opened.Interrupt(t.Context()), pool.ErrNothingRuns)
	opened.cell(t, "x = 5", "", execution.SessionFresh, 1)
	end := opened.begin(t.Context(), t, "run", program(endless))
	if err := opened.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := receive(t, "the run", end); e.err != nil || e.outcome.Status != execution.StatusCancelled || e.outcome.ExitCode != 130 || e.outcome.State != execution.SessionKept {
		t.Errorf("the run ended with %+v", e)
	}
	opened.cell(t, "print(x)", "5\n", execution.SessionKept, 3)
}

func sessionTimeout(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	opened.cell(t, "x = 5", "", execution.SessionFresh, 1)
	run := program(endless)
	run.Limits.Timeout = 300 * time.Millisecond
	outcome, err := opened.Run(t.Context(), "run", run, newRecord())
	if err != nil || outcome.Status != execution.StatusTimedOut || outcome.State != execution.SessionKept {
		t.Errorf("the end is %+v, %v", outcome, err)
	}
	opened.cell(t, "print(x)", "5\n", execution.SessionKept, 3)
}

// I8: a program that takes no interrupt is killed, and the next run says that it
// begins anew, with the files that there were.
func sessionLosesState(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	opened.cell(t, "x = 5; open('kept.txt', 'w').write('kept')", "", execution.SessionFresh, 1)
	run := program("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + endless)
	run.Limits.Timeout = 300 * time.Millisecond
	outcome, err := opened.Run(t.Context(), "run", run, newRecord())
	if err != nil || outcome.Status != execution.StatusTimedOut || outcome.State != execution.SessionLost {
		t.Errorf("the end is %+v, %v", outcome, err)
	}
	opened.cell(t, "print(open('kept.txt').read(), 'x' in globals())", "kept False\n", execution.SessionFresh, 3)
}

// I8: what nobody waits for ends, and its session is there for the next caller.
func sessionOutlivesCaller(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	ctx, cancel := context.WithCancel(t.Context())
	end := opened.begin(ctx, t, "run", program(endless))
	cancel()
	if e := receive(t, "the run", end); e.err == nil && e.outcome.Status == execution.StatusSucceeded {
		t.Errorf("the run ended with %+v", e)
	}
	deadline := time.Now().Add(patience)
	for {
		status, err := opened.Status(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the program does not end: %+v, %v", status, err)
		}
		if status.Running == "" {
			break
		}
		<-time.After(lookEvery)
	}
	opened.cell(t, "print(1)", "1\n", execution.SessionKept, 2)
}

// I4: closing a session ends what runs in it and its sandbox. Closing it again is
// no error.
func sessionCloses(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	end := opened.begin(t.Context(), t, "run", program(endless))
	for range 2 {
		if err := s.sessions(t).EndSession(t.Context(), opened.id); err != nil {
			t.Error(err)
		}
	}
	// Its runner may still say how it ended, or be gone before.
	if e := receive(t, "the run", end); e.err == nil && e.outcome.Status != execution.StatusCancelled {
		t.Errorf("the run ended with %+v", e)
	}
	s.ends(t, opened, execution.SessionClosed)
	_, err := opened.Run(t.Context(), "late", program("print(1)"), newRecord())
	over(t, err, execution.SessionClosed)
}

// I4: a session that nobody uses ends. Who only looks does not use it; a run does.
func sessionIdles(t *testing.T, s suite) {
	want := wantSession()
	want.Idle = 2 * time.Second
	opened := s.open(t, want)
	opened.cell(t, "import time; time.sleep(3); print(1)", "1\n", execution.SessionFresh, 1)
	s.ends(t, opened, execution.SessionIdle)
}

// I4: a session ends at its deadline, also in the middle of a run. The run ends
// with an outcome where its runner could still say it.
func sessionExpires(t *testing.T, s suite) {
	want := wantSession()
	want.Deadline = time.Now().Add(3 * time.Second)
	opened := s.open(t, want)
	end := opened.begin(t.Context(), t, "run", program(endless))
	e := receive(t, "the run", end)
	if early := time.Until(want.Deadline); early > 0 {
		t.Errorf("the session ended %s before its deadline", early)
	}
	switch {
	case e.err != nil:
		over(t, e.err, execution.SessionExpired)
	case e.outcome.Status != execution.StatusCancelled || e.outcome.State != execution.SessionLost:
		t.Errorf("the run ended with %+v", e.outcome)
	}
	s.ends(t, opened, execution.SessionExpired)
}

func sessionIsLost(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	opened.cell(t, "x = 5", "", execution.SessionFresh, 1)
	s.Kill(t, opened.Info().Sandbox)
	s.ends(t, opened, execution.SessionSandboxLost)
	if err := s.sessions(t).EndSession(t.Context(), opened.id); err != nil {
		t.Errorf("ending a lost session: %v", err)
	}
}

func tooManySessions(t *testing.T, s suite) {
	var all []session
	for range s.sizes.Sessions {
		all = append(all, s.open(t, wantSession()))
	}
	_, err := s.sessions(t).OpenSession(t.Context(), wantSession())
	check(t, err, pool.ErrTooManySessions)
	for i, each := range all {
		each.cell(t, fmt.Sprintf("print(%d)", i), fmt.Sprintf("%d\n", i), execution.SessionFresh, 1)
	}
	if err := s.sessions(t).EndSession(t.Context(), all[0].id); err != nil {
		t.Fatal(err)
	}
	s.gone(t, all[0].Info().Sandbox)
	s.open(t, wantSession()).cell(t, "print(1)", "1\n", execution.SessionFresh, 1)
}

func unknownSession(t *testing.T, s suite) {
	_, err := s.sessions(t).Session(t.Context(), execution.NewSessionID())
	check(t, err, pool.ErrNoSession)
	check(t, s.sessions(t).EndSession(t.Context(), execution.NewSessionID()), pool.ErrNoSession)
	want := wantSession()
	want.Pool = "nowhere"
	_, err = s.sessions(t).OpenSession(t.Context(), want)
	check(t, err, pool.ErrUnknownPool)
}

// A session that finds nothing free is refused after its wait; an idle one is
// not ended for it.
func sessionWaits(t *testing.T, s suite) {
	first := s.open(t, wantSession())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := s.sessions(t).OpenSession(ctx, wantSession())
	check(t, err, pool.ErrNoSandbox)
	first.cell(t, "print(1)", "1\n", execution.SessionFresh, 1)
	if list, err := s.sessions(t).Sessions(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("the list is %+v, %v", list, err)
	}
}
