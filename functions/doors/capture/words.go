package capture

import (
	"fmt"

	"github.com/preheat-dev/preheat/api/execution"
)

// Complete reports whether the program succeeded and nothing of its output is
// left out. Anything else must not look like a success.
func (o *Outcome) Complete() bool {
	return o.Problem == nil && o.Exit.Status == execution.StatusSucceeded &&
		!o.Exit.Truncated.Stdout.Truncated && !o.Exit.Truncated.Stderr.Truncated
}

// Explain says in sentences what the streams do not: how a program ended that
// did not succeed, and what is left out of what it yielded.
func (o *Outcome) Explain() []string {
	var said []string
	if o.Problem != nil {
		said = append(said, explainProblem(o.Problem)...)
	} else if s := explainStatus(&o.Exit); s != "" {
		said = append(said, s)
	}
	for _, name := range []string{"stdout", "stderr"} {
		t := o.Exit.Truncated.Stdout
		if name == "stderr" {
			t = o.Exit.Truncated.Stderr
		}
		if t.Truncated {
			said = append(said, fmt.Sprintf("The output is incomplete: %d of the %d bytes of %s are here, from its beginning and its end.", t.CapturedBytes, t.TotalBytes, name))
		}
	}
	for _, a := range o.Artifacts {
		if a.Omitted != "" {
			said = append(said, fmt.Sprintf("The file %s (%d bytes) is left out: %s.", a.Path, a.Size, a.Omitted))
		}
	}
	return append(said, o.Exit.Notes...)
}

func explainStatus(x *execution.Exit) string {
	switch x.Status {
	case execution.StatusSucceeded:
		return ""
	case execution.StatusTimedOut:
		return "The program was ended at its time limit."
	case execution.StatusOutOfMemory:
		return "The program was ended because it ran out of memory."
	case execution.StatusOutputLimit:
		return "The program was ended because it wrote more output than it may."
	case execution.StatusCancelled:
		return "The program was cancelled before its end."
	}
	switch {
	case x.Signal != nil:
		return fmt.Sprintf("The program was ended by the signal %s.", *x.Signal)
	case x.ExitCode != nil:
		return fmt.Sprintf("The program failed with exit code %d.", *x.ExitCode)
	}
	return "The program failed."
}

func explainProblem(p *execution.Problem) []string {
	said := []string{"The program was not run to its end: " + p.Error()}
	if p.RetryAfterSeconds > 0 {
		said = append(said, fmt.Sprintf("Try again in %d seconds.", p.RetryAfterSeconds))
	}
	return said
}

// gapLine stands where bytes are left out.
const gapLine = "\n[%d bytes are left out here]\n"

// Text is the stream as text, with a line where bytes are left out.
func (s *Stream) Text() string {
	if s.Skipped == 0 {
		text, _ := execution.Text(s.Data)
		return text
	}
	head, _ := execution.Text(s.Data[:s.Gap])
	tail, _ := execution.Text(s.Data[s.Gap:])
	return head + fmt.Sprintf(gapLine, s.Skipped) + tail
}
