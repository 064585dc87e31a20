// Package wire is the protocol between execute and the runner inside a
// sandbox: frames over a stream connection that serves one execution, or one
// operation on a session.
//
//	runner → execute   ready                                (once)
//	execute → runner   hello, then run                      (once)
//	execute → runner   cancel                               (at most once)
//	runner → execute   started, output*, result*, artifact*, exit | failure
//
// The runner sends ready as soon as it can take a run; it holds the version
// that the runner speaks. The hello is small and holds the version of the
// connection and the token: the runner reads nothing more before it has checked
// them, and accepts the run before it reads it. A cancel frame and the end of
// the connection both make it kill everything and end. Results and artifacts
// are items: their content follows in pieces, among which output may come, so
// that the runner never holds more than a piece: the program may have left it
// little memory. Execute in turn accepts no more than the run's limits allow,
// since a program may have taken its runner over.
//
// Version 1 has no hello: ready is empty, and the token is the first field of
// the run. Version 2 has no sessions, see RoleSession. Both ends speak them with
// an end that is older.
package wire

import (
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// Version is the newest version of the protocol, oldest the oldest one that
// both ends still understand.
const (
	Version = 3
	oldest  = 1
)

// Hello is what execute begins a connection with.
type Hello struct {
	// Version is that of the connection: no newer than either end.
	Version int `json:"version"`
	// Token must equal the sandbox's token, where it has one.
	Token string `json:"token,omitempty"`
	// Role is what the connection is for.
	Role Role `json:"role"`
}

// Role is what a connection is for.
type Role string

// RoleRun is the role of a connection that brings a run.
const RoleRun Role = "run"

// Run is what execute asks of the runner. Everything in it has been validated
// by execute; the runner checks again what its own safety depends on.
type Run struct {
	// Token is the one of Hello, in version 1 only. It must be the first field.
	Token    string            `json:"token,omitempty"`
	Language string            `json:"language"`
	Code     []byte            `json:"code"`
	Stdin    []byte            `json:"stdin,omitempty"`
	Args     []string          `json:"args,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Files    []File            `json:"files,omitempty"`
	Limits   Limits            `json:"limits"`
	// Alternatives says that results may have several parts.
	Alternatives bool `json:"alternatives,omitempty"`
}

// File is an input file, its path already known to stay inside.
type File struct {
	Path    string `json:"path"`
	Content []byte `json:"content"`
}

// Limits bounds one run inside the sandbox. All sizes are in bytes.
type Limits struct {
	Timeout time.Duration `json:"timeout"`
	// Output is kept of each stream; half of it is head, half tail.
	Output int64 `json:"output"`
	// TotalOutput ends the program when a stream exceeds it.
	TotalOutput int64 `json:"total_output"`
	// Artifacts and ArtifactBytes bound what is collected of files, Results
	// and ResultBytes what is collected of rich results.
	Artifacts     int   `json:"artifacts"`
	ArtifactBytes int64 `json:"artifact_bytes"`
	Results       int   `json:"results"`
	ResultBytes   int64 `json:"result_bytes"`
}

// Sink takes what a run yields, in order, from one goroutine. The byte slices
// are valid during the call only.
type Sink interface {
	// Started is called once, when the program has been handed over.
	Started()
	// Output is a piece of a stream. skipped counts the bytes of the stream
	// that were left out directly before it.
	Output(stream execution.Stream, data []byte, skipped int64)
	Result(execution.RichResult)
	Artifact(execution.Artifact)
}

// Outcome is how a run ended, as the runner saw it.
type Outcome struct {
	Status    execution.Status    `json:"status"`
	ExitCode  int                 `json:"exit_code"`
	Signal    string              `json:"signal,omitempty"`
	Truncated execution.Truncated `json:"truncated"`
	Usage     execution.Usage     `json:"usage"`
	// Start is the time from the run frame to the program's start, Run the
	// program's own time.
	Start time.Duration `json:"start"`
	Run   time.Duration `json:"run"`
	Notes []string      `json:"notes,omitempty"`
}

// Failure is why a runner could not run a program.
type Failure struct {
	Code   FailureCode `json:"code"`
	Detail string      `json:"detail"`
	// Field is the request's field that is wrong, where Detail does not name it.
	Field string `json:"field,omitempty"`
}

// FailureCode is the kind of a Failure.
type FailureCode string

// The failure codes.
const (
	// FailureUsed: this sandbox has already accepted a run (409).
	FailureUsed FailureCode = "used"
	// FailureToken: the token is not this sandbox's.
	FailureToken FailureCode = "token"
	// FailureVersion: the runner does not speak what the hello asks for.
	FailureVersion FailureCode = "version"
	// FailureInvalid: the run cannot be carried out as it is.
	FailureInvalid FailureCode = "invalid"
	// FailureInternal: the runner failed.
	FailureInternal FailureCode = "internal"
)

// Error implements error.
func (f *Failure) Error() string { return "runner: " + string(f.Code) + ": " + f.Detail }
