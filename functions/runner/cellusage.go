package runner

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// cellUsage measures what a cell uses: its interpreter lives on, so that only
// a part of it can be had when processes are reaped.
type cellUsage struct {
	pid           int
	own, orphaned time.Duration
}

// newCellUsage begins to measure.
func newCellUsage(p *processes, pid int) cellUsage {
	u := cellUsage{pid: pid, own: cpuTime(pid) + childrenTime(pid)}
	u.orphaned, _ = p.Usage()
	// 5 resets the peak of its resident memory (proc(5), clear_refs). Where it
	// cannot be reset, it is the peak of the interpreter's whole life.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	return u
}

// end returns what was used. dead says that the interpreter has been reaped.
func (u cellUsage) end(p *processes, dead bool) execution.Usage {
	cpu, peak := p.Usage()
	cpu -= u.orphaned + u.own
	if !dead {
		cpu += cpuTime(u.pid) + childrenTime(u.pid)
		peak = peakMemory(u.pid)
	}
	return execution.Usage{CPUMS: execution.Milliseconds(max(0, cpu)), MaxRSSBytes: peak}
}

// clockTick is the unit of times in /proc/PID/stat: USER_HZ is 100 on all
// architectures that Go runs on (Linux, asm-generic/param.h).
const clockTick = 10 * time.Millisecond

// childrenTime is the processor time of the children that a process has waited for.
func childrenTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, which may hold anything, ends with the last parenthesis; cutime
	// and cstime are the fields 16 and 17, counted from 1 (proc_pid_stat(5)).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const cutime = 16 - 3
	if len(fields) < cutime+2 {
		return 0
	}
	var sum time.Duration
	for _, f := range fields[cutime : cutime+2] {
		ticks, _ := strconv.ParseInt(string(f), 10, 64)
		sum += time.Duration(ticks) * clockTick
	}
	return sum
}

// peakMemory is the peak of a process's resident memory, in bytes, or 0.
func peakMemory(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	number, _, _ := bytes.Cut(bytes.TrimLeft(rest, " \t"), []byte(" kB"))
	kib, _ := strconv.ParseInt(string(number), 10, 64)
	return kib << 10
}
