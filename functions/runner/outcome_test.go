package runner

import (
	"reflect"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// Wait statuses as wait(2) encodes them.
func exited(code int) syscall.WaitStatus            { return syscall.WaitStatus(code << 8) }
func signalled(s syscall.Signal) syscall.WaitStatus { return syscall.WaitStatus(s) }

func TestConclude(t *testing.T) {
	const killedNote = "1 process(es) of the program were killed at the memory limit"
	tests := []struct {
		name     string
		why      cause
		status   syscall.WaitStatus
		oomKills int64
		want     wire.Outcome
	}{
		{"success", causeExit, exited(0), 0, wire.Outcome{Status: execution.StatusSucceeded}},
		{"exit code", causeExit, exited(3), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 3}},
		{"signal", causeExit, signalled(unix.SIGSEGV), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 139, Signal: "SIGSEGV"}},
		{"signal with a core", causeExit, signalled(unix.SIGABRT | 0x80), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 134, Signal: "SIGABRT"}},
		{"signal without a name", causeExit, signalled(40), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 168, Signal: "signal 40"}},
		{"killed by itself", causeExit, signalled(unix.SIGKILL), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 137, Signal: "SIGKILL"}},
		{"out of memory", causeExit, signalled(unix.SIGKILL), 2, wire.Outcome{Status: execution.StatusOutOfMemory, ExitCode: 137, Signal: "SIGKILL"}},
		{"a shell's last child out of memory", causeExit, exited(137), 1, wire.Outcome{Status: execution.StatusOutOfMemory, ExitCode: 137}},
		{"137 without a memory kill", causeExit, exited(137), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 137}},
		{"a child out of memory", causeExit, exited(0), 1, wire.Outcome{Status: execution.StatusSucceeded, Notes: []string{killedNote}}},
		{"a child out of memory and a failure", causeExit, exited(1), 1, wire.Outcome{Status: execution.StatusFailed, ExitCode: 1, Notes: []string{killedNote}}},
		{"timeout", causeTimeout, signalled(unix.SIGKILL), 0, wire.Outcome{Status: execution.StatusTimedOut, ExitCode: 137, Signal: "SIGKILL"}},
		{"timeout after a memory kill", causeTimeout, signalled(unix.SIGKILL), 1, wire.Outcome{Status: execution.StatusTimedOut, ExitCode: 137, Signal: "SIGKILL", Notes: []string{killedNote}}},
		{"output limit", causeOutput, signalled(unix.SIGKILL), 0, wire.Outcome{Status: execution.StatusOutputLimit, ExitCode: 137, Signal: "SIGKILL"}},
		{"cancelled", causeCancel, signalled(unix.SIGKILL), 0, wire.Outcome{Status: execution.StatusCancelled, ExitCode: 137, Signal: "SIGKILL"}},
		// Between the cause and the kill the program may end by itself. No
		// cause may then stand beside its exit code.
		{"ended at its deadline", causeTimeout, exited(0), 0, wire.Outcome{Status: execution.StatusSucceeded}},
		{"failed at its deadline", causeTimeout, exited(1), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 1}},
		{"crashed at its output limit", causeOutput, signalled(unix.SIGBUS), 0, wire.Outcome{Status: execution.StatusFailed, ExitCode: 135, Signal: "SIGBUS"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Usage.OOMKills = tt.oomKills
			got := conclude(tt.why, tt.status, tt.oomKills)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestI6NoCauseWithExitCodeZero: whatever happens, exit code 0 is a success
// and nothing else is.
func TestI6NoCauseWithExitCodeZero(t *testing.T) {
	for why := causeExit; why <= causeCancel; why++ {
		for status := range 1 << 16 {
			ws := syscall.WaitStatus(status)
			if !ws.Exited() && !ws.Signaled() {
				continue
			}
			for kills := range int64(2) {
				o := conclude(why, ws, kills)
				if (o.ExitCode == 0) != (o.Status == execution.StatusSucceeded) || (o.Signal != "") != ws.Signaled() {
					t.Fatalf("cause %d, wait status %#x, %d kills: %+v", why, status, kills, o)
				}
			}
		}
	}
}
