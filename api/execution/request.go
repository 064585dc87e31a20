// Package execution is the contract between Preheat and its callers: what a
// request to run code holds, what its result says, which events a stream
// carries and how errors look. It has no behaviour beyond decoding and
// validation, and depends on nothing that runs code.
package execution

// Encoding names of File.Encoding, Artifact.Encoding and Output.Encoding.
const (
	EncodingUTF8   = "utf-8"
	EncodingBase64 = "base64"
)

// Request asks for one execution of a program in a fresh sandbox.
type Request struct {
	// Language names the interpreter; GET /v1/languages lists the choices.
	Language string `json:"language"`
	// Code is the program's source text.
	Code string `json:"code"`
	// Stdin is fed to the program byte for byte; standard input is at its
	// end from the start when it is empty.
	Stdin string `json:"stdin,omitempty"`
	// StdinBase64 is the same for bytes that are no text, in place of Stdin.
	StdinBase64 string `json:"stdin_base64,omitempty"`
	// Args are the program's arguments, after its own name.
	Args []string `json:"args,omitempty"`
	// Env is added to the sandbox's environment. Values are passed as they
	// are and never become source text.
	Env map[string]string `json:"env,omitempty"`
	// Files are written to the working directory before the program starts.
	Files []File `json:"files,omitempty"`
	// Limits narrows or widens the server's defaults up to its maxima.
	Limits Limits `json:"limits,omitzero"`
	// Pool chooses a warm pool by name; empty leaves the choice to the server.
	Pool string `json:"pool,omitempty"`
}

// File is an input file of a Request.
type File struct {
	// Path is relative to the working directory, with '/' between its parts.
	Path string `json:"path"`
	// Content is text, or base64 when Encoding says so.
	Content string `json:"content,omitempty"`
	// Encoding is EncodingUTF8 (also when empty) or EncodingBase64, in any case;
	// utf8 is another name of the former.
	Encoding string `json:"encoding,omitempty"`
}

// Limits bounds one execution. A zero field takes the server's default.
type Limits struct {
	// TimeoutSeconds bounds the program's wall-clock time, in seconds.
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
	// OutputBytes bounds what is kept of each output stream, in bytes. The
	// program runs on beyond it: the head and the tail are kept.
	OutputBytes int64 `json:"output_bytes,omitempty"`
	// TotalOutputBytes bounds what the program may write to each output
	// stream, in bytes. Beyond it the program is ended with
	// StatusOutputLimit.
	TotalOutputBytes int64 `json:"total_output_bytes,omitempty"`
	// MemoryBytes bounds the sandbox's memory, in bytes, where the pool can
	// set it per execution.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
}

// Language is one entry of GET /v1/languages.
type Language struct {
	// Name is what Request.Language takes, in any case; here it is in lower case.
	Name string `json:"name"`
	// Aliases are other names that Request.Language takes for it, likewise.
	Aliases []string `json:"aliases"`
	// Version is what the interpreter says of itself, where it is known.
	Version string `json:"version"`
	// Warm says whether an interpreter is started ahead in its sandboxes.
	Warm bool `json:"warm"`
	// Pools names the warm pools that offer it.
	Pools []string `json:"pools"`
}

// PoolStatus is one entry of GET /v1/pools: how many sandboxes of a pool are
// in which state.
type PoolStatus struct {
	Name      string   `json:"name"`
	Languages []string `json:"languages"`
	Desired   int      `json:"desired"`
	Warm      int      `json:"warm"`
	Warming   int      `json:"warming"`
	Claimed   int      `json:"claimed"`
	// Waiting counts the executions that wait for a warm sandbox.
	Waiting int `json:"waiting"`
	// Sandboxes lists the pool's sandboxes, by name. A stream lists the first
	// ones only, and SandboxesOmitted counts the others.
	Sandboxes        []SandboxStatus `json:"sandboxes"`
	SandboxesOmitted int             `json:"sandboxes_omitted"`
	// Problem says why the pool cannot reach its size; empty when it can.
	Problem string `json:"problem"`
}

// Sandbox states in SandboxStatus.State.
const (
	SandboxWarming = "warming"
	SandboxWarm    = "warm"
	SandboxClaimed = "claimed"
)

// SandboxStatus is one sandbox in a PoolStatus.
type SandboxStatus struct {
	Name  string `json:"name"`
	State string `json:"state"`
}
