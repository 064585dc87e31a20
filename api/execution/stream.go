package execution

// Names of the events of a streamed execution (the SSE "event:" field). A
// stream that ends without EventExit has failed.
const (
	// EventStart: the program runs; data is a Start.
	EventStart = "start"
	// EventStdout and EventStderr: data is an Output.
	EventStdout = "stdout"
	EventStderr = "stderr"
	// EventResult: data is a RichResult.
	EventResult = "result"
	// EventArtifact: data is an Artifact.
	EventArtifact = "artifact"
	// EventPing: nothing happened; data is an empty object.
	EventPing = "ping"
	// EventExit: the one terminal event; data is an Exit.
	EventExit = "exit"
)

// Start is the data of EventStart.
type Start struct {
	SandboxName string `json:"sandbox_name"`
	Language    string `json:"language"`
	RequestID   string `json:"request_id"`
}

// Output is the data of EventStdout and EventStderr. Text is cut between
// runes only; bytes that are not UTF-8 come as base64.
type Output struct {
	Data     string `json:"data"`
	Encoding string `json:"encoding"`
	// Skipped counts the bytes of this stream that were left out directly
	// before this piece.
	Skipped int64 `json:"skipped,omitempty"`
}

// Exit is the data of EventExit: a Result without what the stream already
// carried. When the platform failed, Status is StatusPlatformError, ExitCode
// is null and Problem says what happened.
type Exit struct {
	ExitCode    *int      `json:"exit_code"`
	SandboxName string    `json:"sandbox_name"`
	Status      Status    `json:"status"`
	Signal      *string   `json:"signal"`
	Truncated   Truncated `json:"truncated"`
	Usage       Usage     `json:"usage"`
	TimingsMS   Timings   `json:"timings_ms"`
	Notes       []string  `json:"notes"`
	Problem     *Problem  `json:"problem"`
}

// Exit returns the terminal event of a stream that r completes.
func (r *Result) Exit() Exit {
	code := r.ExitCode
	return Exit{
		ExitCode: &code, SandboxName: r.SandboxName, Status: r.Status, Signal: r.Signal,
		Truncated: r.Truncated, Usage: r.Usage, TimingsMS: r.TimingsMS, Notes: r.Notes,
	}
}
