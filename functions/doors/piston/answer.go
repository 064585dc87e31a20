package piston

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/doors/capture"
)

// answer is the body of a response to POST /execute.
type answer struct {
	Run      stage  `json:"run"`
	Language string `json:"language"`
	Version  string `json:"version"`
}

// stage is how a program ended. Clients want null in code, signal, message and
// status, and numbers in the others.
type stage struct {
	Stdout  string  `json:"stdout"`
	Stderr  string  `json:"stderr"`
	Output  string  `json:"output"`
	Code    *int    `json:"code"`
	Signal  *string `json:"signal"`
	Message *string `json:"message"`
	Status  *string `json:"status"`
	// Times are in milliseconds.
	CPUTime  float64 `json:"cpu_time"`
	WallTime float64 `json:"wall_time"`
	Memory   int64   `json:"memory"`
}

// Piston's names for how a program ended that did not succeed.
const (
	runtimeError  = "RE"
	killed        = "SG"
	timedOut      = "TO"
	stdoutTooLong = "OL"
	stderrTooLong = "EL"
	internalError = "XX"
)

func stageOf(o *capture.Outcome) stage {
	x := &o.Exit
	both, _ := execution.Text(o.Both)
	s := stage{
		Stdout: o.Stdout.Text(), Stderr: o.Stderr.Text(), Output: both,
		Code: x.ExitCode, Signal: x.Signal, CPUTime: x.Usage.CPUMS, WallTime: x.Usage.WallMS, Memory: x.Usage.MaxRSSBytes,
	}
	if x.Signal != nil {
		s.Code = nil
	}
	if status := statusOf(o); status != "" {
		s.Status = &status
	}
	if said := append(o.Explain(), unsaid(o)...); len(said) > 0 {
		text := strings.Join(said, " ")
		s.Message = &text
	}
	return s
}

func statusOf(o *capture.Outcome) string {
	x := &o.Exit
	tooLong := stdoutTooLong
	if !x.Truncated.Stdout.Truncated && x.Truncated.Stderr.Truncated || x.Truncated.Stderr.TotalBytes > x.Truncated.Stdout.TotalBytes {
		tooLong = stderrTooLong
	}
	switch {
	case o.Problem != nil:
		return internalError
	case x.Status == execution.StatusTimedOut:
		return timedOut
	case x.Status == execution.StatusOutputLimit:
		return tooLong
	case x.Signal != nil:
		return killed
	case x.Status != execution.StatusSucceeded:
		return runtimeError
	case !o.Complete():
		return tooLong // the output is cut, though the program succeeded
	}
	return ""
}

// unsaid is what the protocol has no place for.
func unsaid(o *capture.Outcome) []string {
	var said []string
	figures := 0
	for _, r := range o.Results {
		if strings.HasPrefix(r.MIME, "image/") {
			figures++
		}
	}
	if figures > 0 || len(o.Artifacts) > 0 {
		said = append(said, fmt.Sprintf("Piston's interface carries no figures and no files: %d and %d are left out.", figures, len(o.Artifacts)))
	}
	if !utf8.Valid(o.Stdout.Data) || !utf8.Valid(o.Stderr.Data) {
		said = append(said, "Bytes that are not UTF-8 stand as U+FFFD.")
	}
	return said
}
