package wire

import (
	"errors"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// RoleSession is the role of a connection that brings one operation on a
// session: a sandbox that is kept for several runs.
//
//	runner → execute   ready                                     (once)
//	execute → runner   hello, operation                          (once)
//
// and then, by the operation:
//
//	open                                  execute: run (its files)   runner: reply
//	run                                   execute: run, cancel?      runner: as for a single run
//	interrupt, status, remove, end                                   runner: reply
//	list                                                             runner: file*, reply
//	read                                                             runner: file, data*, end
//	archive                                                          runner: data*, end
//	write                                 execute: data*, end        runner: file, reply
//
// Each may end in a failure in place of what is to come. The first operation is
// open, which wins the sandbox as a run does; those after it name the same
// session. The end of a connection ends its own operation: a run is interrupted,
// as by cancel, and what is not whole is not written.
const RoleSession Role = "session"

// sessions is the first version that knows RoleSession.
const sessions = 3

// ErrNoSessions says that a runner is too old to keep sessions.
var ErrNoSessions = errors.New("the runner keeps no sessions")

// Operation is what a connection of RoleSession is for. Of the fields below Kind,
// each is for the kinds that it names.
type Operation struct {
	Session string        `json:"session"`
	Kind    OperationKind `json:"kind"`

	// open
	Idle     time.Duration `json:"idle,omitempty"`
	Lifetime time.Duration `json:"lifetime,omitempty"`
	// run: the id of the execution
	Execution string `json:"execution,omitempty"`
	// read, write, remove, archive: relative to the session's folder, which is ""
	Path string `json:"path,omitempty"`
	// read: where to begin, and how many bytes at most; all if negative
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
	// list: the most files
	Max int `json:"max,omitempty"`
}

// OperationKind is the kind of an Operation.
type OperationKind string

// The kinds of operations.
const (
	OperationOpen      OperationKind = "open"
	OperationRun       OperationKind = "run"
	OperationInterrupt OperationKind = "interrupt"
	OperationStatus    OperationKind = "status"
	OperationList      OperationKind = "list"
	OperationRead      OperationKind = "read"
	OperationArchive   OperationKind = "archive"
	OperationWrite     OperationKind = "write"
	OperationRemove    OperationKind = "remove"
	OperationEnd       OperationKind = "end"
)

// Reply ends an operation that was carried out.
type Reply struct {
	// status
	Running  string        `json:"running,omitempty"`
	Sequence int64         `json:"sequence,omitempty"`
	IdleLeft time.Duration `json:"idle_left,omitempty"`
	// list: there are more files than those that were sent
	More bool `json:"more,omitempty"`
	// write: there was no such file before
	Created bool `json:"created,omitempty"`
}

// SessionFile is a regular file in a session's folder.
type SessionFile struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"` // bytes
	Modified time.Time `json:"modified"`
	// ETag identifies the content without having read it.
	ETag string `json:"etag"`
}

// SessionOutcome is how a run in a session ended.
type SessionOutcome struct {
	Outcome
	State execution.SessionState `json:"state"`
	// Sequence is the run's number in the session, from 1 on.
	Sequence int64 `json:"sequence"`
}

// The failure codes of operations on sessions.
const (
	// FailureSession: the sandbox is not this session's, or it is over.
	FailureSession FailureCode = "session"
	// FailureBusy: another run goes on, whose execution's id is the detail.
	FailureBusy FailureCode = "busy"
	// FailureNothingRuns: there is nothing to interrupt.
	FailureNothingRuns FailureCode = "nothing_runs"
	// FailureNoFile: there is no such file.
	FailureNoFile FailureCode = "no_file"
)
