package runner

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// cause is why a program's time was over.
type cause int

const (
	causeExit cause = iota
	causeTimeout
	causeOutput
	causeCancel
)

// conclude says how a program ended: why its time was over, how its main
// process ended, and how many processes were killed for memory meanwhile.
func conclude(why cause, status syscall.WaitStatus, oomKills int64) wire.Outcome {
	var o wire.Outcome
	switch {
	case status.Signaled():
		o.ExitCode = 128 + int(status.Signal())
		o.Signal = unix.SignalName(status.Signal())
		if o.Signal == "" {
			o.Signal = fmt.Sprintf("signal %d", int(status.Signal()))
		}
	default:
		o.ExitCode = status.ExitStatus()
	}
	if status.Exited() || status.Signal() != unix.SIGKILL {
		// It ended by itself before its time was over: that is what counts.
		why = causeExit
	}
	o.Usage.OOMKills = oomKills
	killed := o.ExitCode == 128+int(unix.SIGKILL)
	switch {
	case oomKills > 0 && killed && why == causeExit:
		// 137 is also what a shell exits with when its last child was killed.
		o.Status = execution.StatusOutOfMemory
	case why == causeTimeout:
		o.Status = execution.StatusTimedOut
	case why == causeOutput:
		o.Status = execution.StatusOutputLimit
	case why == causeCancel:
		o.Status = execution.StatusCancelled
	case o.ExitCode == 0:
		o.Status = execution.StatusSucceeded
	default:
		o.Status = execution.StatusFailed
	}
	if oomKills > 0 && o.Status != execution.StatusOutOfMemory {
		o.Notes = append(o.Notes, fmt.Sprintf("%d process(es) of the program were killed at the memory limit", oomKills))
	}
	return o
}
