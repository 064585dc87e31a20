package execution

import (
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"
)

// Status says how an execution ended.
type Status string

// The statuses. All but StatusPlatformError are about the program and stand
// in a Result; StatusPlatformError stands only in an Exit that ends a stream
// which the platform could not complete.
const (
	// StatusSucceeded: the program exited with code 0.
	StatusSucceeded Status = "succeeded"
	// StatusFailed: the program exited with another code or by a signal.
	StatusFailed Status = "failed"
	// StatusTimedOut: the program was ended at its wall-clock limit.
	StatusTimedOut Status = "timed_out"
	// StatusOutOfMemory: the program was ended at its memory limit.
	StatusOutOfMemory Status = "out_of_memory"
	// StatusOutputLimit: the program was ended at its total output limit.
	StatusOutputLimit Status = "output_limit"
	// StatusCancelled: the caller went away or asked for the end.
	StatusCancelled Status = "cancelled"
	// StatusPlatformError: the platform failed, Exit.Problem says how.
	StatusPlatformError Status = "platform_error"
)

// Result is what an execution left. No field is omitted because it is zero.
type Result struct {
	// Stdout and Stderr are what the program wrote, as text. Bytes that are
	// not UTF-8 stand as U+FFFD here; StdoutBase64 and StderrBase64 then
	// hold the exact bytes. When Truncated says so, the text is the kept
	// head followed directly by the kept tail.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// ExitCode is the program's exit code, 128+n after signal n.
	ExitCode int `json:"exit_code"`
	// SandboxName names the sandbox, which is gone by now.
	SandboxName string `json:"sandbox_name"`
	Status      Status `json:"status"`
	// Signal names the signal that ended the program, such as "SIGSEGV".
	Signal *string `json:"signal"`
	// StdoutBase64 and StderrBase64 hold the stream's exact bytes when they
	// are not UTF-8, else null.
	StdoutBase64 *string      `json:"stdout_base64"`
	StderrBase64 *string      `json:"stderr_base64"`
	Truncated    Truncated    `json:"truncated"`
	Results      []RichResult `json:"results"`
	Artifacts    []Artifact   `json:"artifacts"`
	Usage        Usage        `json:"usage"`
	TimingsMS    Timings      `json:"timings_ms"`
	// Notes are short sentences about what a caller might otherwise
	// misread, such as a child process that was killed for memory.
	Notes []string `json:"notes"`
}

// Stream is an output stream of a program.
type Stream int

// The two output streams.
const (
	Stdout Stream = iota
	Stderr
)

// Truncated says, per stream, how much was kept of what the program wrote.
type Truncated struct {
	Stdout StreamTruncation `json:"stdout"`
	Stderr StreamTruncation `json:"stderr"`
}

// StreamTruncation counts one output stream, in bytes.
type StreamTruncation struct {
	Truncated bool `json:"truncated"`
	// CapturedBytes are in the result; HeadBytes of them come from the
	// stream's beginning, the others from its end.
	CapturedBytes int64 `json:"captured_bytes"`
	HeadBytes     int64 `json:"head_bytes"`
	// TotalBytes is what the program wrote.
	TotalBytes int64 `json:"total_bytes"`
}

// RichResult is a value that the program displayed.
type RichResult struct {
	// MIME is the media type, such as "image/png" or "text/html".
	MIME string `json:"mime"`
	// Data is text for text and JSON types, base64 for all others.
	Data string `json:"data"`
	// Position is how many bytes of stdout the program had written by then.
	Position int64 `json:"position"`
	// Alternatives are the same value in other media types.
	Alternatives []Representation `json:"alternatives"`
}

// Representation is a value in one media type.
type Representation struct {
	// MIME and Data are as in a RichResult.
	MIME string `json:"mime"`
	Data string `json:"data"`
}

// Size is the length of r's data in all its representations, in bytes.
func (r *RichResult) Size() int {
	n := len(r.Data)
	for _, x := range r.Alternatives {
		n += len(x.MIME) + len(x.Data)
	}
	return n
}

// EncodedSize is the length of r's data in a JSON document, in bytes.
func (r *RichResult) EncodedSize() int {
	n := EncodedTextSize(r.Data)
	for _, x := range r.Alternatives {
		n += EncodedTextSize(x.Data)
	}
	return n
}

// Artifact is a file that the program wrote under its working directory.
type Artifact struct {
	// Path is relative to the working directory. Bytes that are not UTF-8
	// are written as \xHH, and a backslash then as \\.
	Path string `json:"path"`
	// Size is the file's size in bytes.
	Size int64  `json:"size"`
	MIME string `json:"mime"`
	// Encoding is EncodingUTF8 or EncodingBase64.
	Encoding string `json:"encoding"`
	// Content is the file's content, empty when Omitted is not.
	Content string `json:"content"`
	// Omitted says why the content is left out, such as "symbolic link" or
	// "larger than the limit"; empty when it is there.
	Omitted string `json:"omitted"`
}

// Usage is what an execution consumed, all processes together.
type Usage struct {
	CPUMS       float64 `json:"cpu_ms"`
	WallMS      float64 `json:"wall_ms"`
	MaxRSSBytes int64   `json:"max_rss_bytes"`
	// OOMKills counts processes that the kernel killed at the memory limit.
	OOMKills int64 `json:"oom_kills"`
}

// Milliseconds is a duration as results have it.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Timings are durations in milliseconds, in the order in which they pass.
type Timings struct {
	// Queue is the wait for a free sandbox.
	Queue float64 `json:"queue"`
	// Claim is the time to make the sandbox this execution's own.
	Claim float64 `json:"claim"`
	// Start is the time to hand the program over until it runs.
	Start float64 `json:"start"`
	// Run is the program's own time.
	Run float64 `json:"run"`
	// Total is everything from the accepted request to the result.
	Total float64 `json:"total"`
}

// Text returns b as text for a JSON document, and the exact bytes as base64
// when they are not UTF-8.
func Text(b []byte) (text string, exact *string) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	e := base64.StdEncoding.EncodeToString(b)
	return strings.ToValidUTF8(string(b), "\uFFFD"), &e
}

// Encode returns b as content and the encoding that it took.
func Encode(b []byte) (content, encoding string) {
	if utf8.Valid(b) {
		return string(b), EncodingUTF8
	}
	return base64.StdEncoding.EncodeToString(b), EncodingBase64
}

// IsTextMIME reports whether a RichResult of this media type holds text as it
// is; the data of all others is base64.
func IsTextMIME(mime string) bool {
	return strings.HasPrefix(mime, "text/") || mime == "application/json" || mime == "image/svg+xml" ||
		strings.HasSuffix(mime, "+json") || strings.HasSuffix(mime, "+xml")
}
