package pool

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
)

// Run is one program and what bounds it. Everything in it is valid.
type Run struct {
	Language    string
	Code, Stdin []byte
	Args        []string
	Env         map[string]string
	Files       []File
	Limits      Limits
}

// File is an input file, at a path that stays inside the working directory.
type File struct {
	Path    string
	Content []byte
}

// Limits bounds one run. All sizes are in bytes.
type Limits struct {
	Timeout time.Duration
	// Output is kept of each stream; half of it is head, half tail.
	Output int64
	// TotalOutput ends the program when a stream exceeds it.
	TotalOutput int64
	// Artifacts and ArtifactBytes bound what is collected of files, Results
	// and ResultBytes what is collected of rich results.
	Artifacts     int
	ArtifactBytes int64
	Results       int
	ResultBytes   int64
	// Memory bounds the sandbox; 0 leaves it as the pool made it.
	Memory int64
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

// Outcome is how a run ended.
type Outcome struct {
	Status    execution.Status
	ExitCode  int
	Signal    string
	Truncated execution.Truncated
	Usage     execution.Usage
	// Start is the time from the arrival of the run to the program's start,
	// Run the program's own time.
	Start, Run time.Duration
	Notes      []string
}

// Killed is how a program ended that was killed together with its runner, which
// could not say so itself. note says what is lost by that.
func Killed(status execution.Status, after time.Duration, note string) Outcome {
	return Outcome{
		Status: status, ExitCode: 128 + int(unix.SIGKILL), Signal: "SIGKILL", Run: after,
		Usage: execution.Usage{WallMS: execution.Milliseconds(after)}, Notes: []string{note},
	}
}

// InvalidError says that a sandbox cannot run a program because of what the
// claim or the run asks for.
type InvalidError struct {
	// Field is the request's field, where the detail does not name it.
	Field string
	// Detail is a clause for the caller to read.
	Detail string
}

// Error implements error.
func (e *InvalidError) Error() string {
	if e.Field != "" {
		return "the sandbox cannot run this: " + e.Field + ": " + e.Detail
	}
	return "the sandbox cannot run this: " + e.Detail
}
