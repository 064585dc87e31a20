package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// Errors about sessions, wrapped with what was being done.
var (
	// ErrNoSession: there is no session of that id, or no longer anything that
	// is known of it.
	ErrNoSession = errors.New("there is no such session")
	// ErrNoSessions: the pool keeps no sessions.
	ErrNoSessions = errors.New("the pool keeps no sessions")
	// ErrTooManySessions: as many sessions are open as there may be.
	ErrTooManySessions = errors.New("too many sessions are open")
	// ErrNoFile: there is no file at that path of a session's folder.
	ErrNoFile = errors.New("there is no such file")
	// ErrNothingRuns: there is no run to interrupt.
	ErrNothingRuns = errors.New("nothing runs in the session")
)

// SessionEndedError says that a session is over, and why: its next caller is
// told so, once it has had its id.
type SessionEndedError struct {
	Reason execution.SessionEnd
}

// Error implements error.
func (e *SessionEndedError) Error() string { return "the session has ended: " + string(e.Reason) }

// BusyError says that another run goes on in the session.
type BusyError struct {
	// Running is the id of the execution that runs.
	Running string
}

// Error implements error.
func (e *BusyError) Error() string { return fmt.Sprintf("execution %s runs in the session", e.Running) }

// SessionClaim says what session is wanted.
type SessionClaim struct {
	// Claim says what sandbox it is to have. Its deadline is the end of the
	// session's lifetime; ID is the id of the request that opens it.
	Claim
	// Session is the id that the session will have: 26 lower-case letters and
	// digits, which nobody can guess.
	Session string
	// Idle is how long the session stays without a run or a transfer of files.
	Idle time.Duration
	// Files are in its folder from the start.
	Files []File
}

// Sessions is what a Pool offers that keeps sandboxes for several runs. Both
// pools keep the same promises:
//
//   - a session's sandbox serves that session alone and has run nothing
//     before (I1, I2); it counts as claimed against its pool's maximum;
//   - it is not destroyed while the session lasts (I3), whatever becomes of the
//     process that opened it where other processes can reach it;
//   - it ends within a few seconds of the session's end, whatever crashed (I4).
type Sessions interface {
	// OpenSession claims a warm sandbox, as Claim does, and makes it a session.
	OpenSession(ctx context.Context, want SessionClaim) (Session, error)
	// Session returns the session with this id. The error is ErrNoSession or a
	// *SessionEndedError when there is none.
	Session(ctx context.Context, id string) (Session, error)
	// Sessions lists the open sessions, the oldest first.
	Sessions(ctx context.Context) ([]SessionInfo, error)
	// EndSession ends a session and everything in it, now. Ending one that has
	// ended is no error; the error is ErrNoSession for one that never was.
	EndSession(ctx context.Context, id string) error
}

// SessionInfo is what is known of a session without asking its sandbox.
type SessionInfo struct {
	ID       string
	Language string
	Pool     string
	// Sandbox is the name of its sandbox.
	Sandbox string
	Opened  time.Time
	// Expires is when it ends at the latest, Idle how long it stays unused.
	Expires time.Time
	Idle    time.Duration
}

// SessionStatus is what a session's sandbox says of it.
type SessionStatus struct {
	// Running is the id of the execution that runs, "" if none does.
	Running string
	// Sequence counts the runs that have begun.
	Sequence int64
	// IdleLeft is the time after which it ends if it is not used.
	IdleLeft time.Duration
}

// Session is an open session. Its methods may be called at once from several
// goroutines. Each returns a *SessionEndedError when the sandbox is gone.
type Session interface {
	// Info is what is known of it.
	Info() SessionInfo
	// Status asks its sandbox.
	Status(ctx context.Context) (SessionStatus, error)
	// Run runs one program in it, with the promises of Sandbox.Run. id names the
	// execution. When ctx ends, the program is interrupted as by Interrupt, and
	// Run returns its outcome if it can still be had. The error is a *BusyError
	// while another one runs.
	Run(ctx context.Context, id string, run Run, sink Sink) (SessionOutcome, error)
	// Interrupt interrupts the run that goes on: SIGINT, and after two seconds
	// SIGKILL. It does not wait for the run's end.
	Interrupt(ctx context.Context) error
	// Files lists the regular files of the session's folder by path, at most max of
	// them, and reports whether there are more.
	Files(ctx context.Context, max int) (files []SessionFile, more bool, err error)
	// Open returns a file's state and its content from offset on, at most length
	// bytes of it, or all if length is negative. The caller closes it.
	Open(ctx context.Context, path string, offset, length int64) (SessionFile, io.ReadCloser, error)
	// Archive returns a tar archive of a folder below the session's own ("" for
	// that itself). The caller closes it.
	Archive(ctx context.Context, path string) (io.ReadCloser, error)
	// Write makes the file at path hold content, whole or not at all, and reports
	// whether there was none before.
	Write(ctx context.Context, path string, content io.Reader) (file SessionFile, created bool, err error)
	// Remove removes a file, or a folder and what is in it.
	Remove(ctx context.Context, path string) error
}

// SessionOutcome is how a run in a session ended.
type SessionOutcome struct {
	Outcome
	// State says what became of the interpreter.
	State execution.SessionState
	// Sequence is the run's number in the session, from 1 on.
	Sequence int64
}

// SessionFile is a file in a session's folder.
type SessionFile struct {
	// Path is relative to the folder, with '/' between its parts.
	Path string
	// Size is in bytes.
	Size     int64
	Modified time.Time
	// ETag identifies the content, in double quotes: size, time of change and
	// inode, since a hash would have to read it.
	ETag string
}
