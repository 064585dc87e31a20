package runner

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exit is how a process ended.
type exit struct {
	status syscall.WaitStatus
}

// processes is the runner's view of the sandbox's processes. As PID 1 it is
// the parent of every orphan: one goroutine reaps them all and reports the
// end of each process that Start started.
type processes struct {
	mu      sync.Mutex
	changed sync.Cond // a process was started, or closed was set
	waiters map[int]chan exit
	closed  bool
	// ignoring says that the signals that processes inherit are ignored.
	ignoring bool
	// idle is closed while there is no process at all.
	idle chan struct{}
	// reaped sums up the processes that have been reaped.
	cpu    time.Duration
	maxRSS int64 // bytes, of the largest process

	oom  *oomPreference
	done chan struct{}
}

// newProcesses starts the reaper. Close ends it.
func newProcesses() *processes {
	p := &processes{waiters: map[int]chan exit{}, idle: make(chan struct{}), oom: newOOMPreference(), done: make(chan struct{})}
	close(p.idle)
	p.changed.L = &p.mu
	go func() {
		defer close(p.done)
		p.reap()
	}()
	return p
}

// Start starts a process and returns its pid and a channel that yields its
// end once.
func (p *processes) Start(path string, argv, env []string, dir string, files []uintptr) (int, <-chan exit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.oom.prefer()
	defer p.oom.reset()
	if p.ignoring {
		if err := handleShared(handlerDefault); err != nil {
			return 0, nil, err
		}
		defer func() { _ = handleShared(handlerIgnore) }()
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: files,
		// A session of its own: signals to its group do not reach the runner.
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("starting %s: %w", path, err)
	}
	end := make(chan exit, 1)
	p.waiters[pid] = end
	p.busy()
	return pid, end, nil
}

// Protect keeps programs, which run as the same user, away from this process:
// not dumpable means that they can neither trace it nor open what lies below
// /proc/1 (prctl(2), PR_SET_DUMPABLE), and it ignores their signals.
func (p *processes) Protect() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protecting the runner: %w", err)
	}
	p.ignoring = true
	return ignoreSignals()
}

// busy notes, with mu held, that there is a process.
func (p *processes) busy() {
	select {
	case <-p.idle:
		p.idle = make(chan struct{})
	default:
	}
	p.changed.Broadcast()
}

// reap collects ended processes until Close.
func (p *processes) reap() {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			if !p.awaitStart() {
				return
			}
		case err == nil:
			p.reaped(pid, status, &usage)
		}
	}
}

// awaitStart blocks until there can be a process again.
func (p *processes) awaitStart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiters) > 0 {
		return true // started after the wait returned
	}
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
	for len(p.waiters) == 0 && !p.closed {
		p.changed.Wait()
	}
	return len(p.waiters) > 0
}

func (p *processes) reaped(pid int, status syscall.WaitStatus, usage *syscall.Rusage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cpu += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	p.maxRSS = max(p.maxRSS, usage.Maxrss<<10)
	if end, ok := p.waiters[pid]; ok {
		delete(p.waiters, pid)
		end <- exit{status}
	}
}

// Usage sums up the processes reaped so far: processor time, and the peak
// memory in bytes of the largest one.
func (p *processes) Usage() (time.Duration, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cpu, p.maxRSS
}

// ResetUsage forgets the processes reaped so far.
func (p *processes) ResetUsage() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cpu, p.maxRSS = 0, 0
}

// KillAll kills every process of the sandbox but the runner and waits until
// they are reaped. The kernel delivers the signal to all of them at once
// (kill(2), pid -1), stopped and forking ones included.
func (p *processes) KillAll() {
	for {
		_ = unix.Kill(-1, unix.SIGKILL)
		p.mu.Lock()
		idle := p.idle
		p.mu.Unlock()
		select {
		case <-idle:
			return
		case <-time.After(50 * time.Millisecond):
			// A process that was in the kernel just then: once more.
		}
	}
}

// Close kills every process and ends the reaper.
func (p *processes) Close() {
	p.KillAll()
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	<-p.done
	p.oom.close()
}

// cpuTime is the processor time that a running process has used.
func cpuTime(pid int) time.Duration {
	// The clock id of another process, from Linux's posix-timers.h:
	// MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
	const sched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|sched, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
