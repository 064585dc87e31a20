package runc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/internal/pause"
)

// reaper waits for the children of this process that nobody else waits for: for
// what a runc that was killed half-way has left to its subreaper.
//
// A child that this process has started itself is waited for at once, and a
// runner by its container. Whatever else has ended and is still there at the next
// pass has nobody.
type reaper struct {
	mu      sync.Mutex
	runners map[int]bool
	// ended are the children that had ended at the last pass.
	ended map[process]bool
}

// process is one process: its number alone may become another's.
type process struct {
	pid     int
	started string // in clock ticks after the machine's start
}

// reapPause is between two passes, far longer than it takes to wait for a child.
const reapPause = 10 * time.Second

// run makes a pass every now and then until the context ends.
func (r *reaper) run(ctx context.Context) {
	for pause.For(ctx, reapPause) {
		r.pass()
	}
}

// keep says that a container waits for its runner, forget that it has.
func (r *reaper) keep(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runners == nil {
		r.runners = map[int]bool{}
	}
	r.runners[pid] = true
}

func (r *reaper) forget(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runners, pid)
}

func (r *reaper) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := endedChildren()
	for p := range orphans(r.ended, now, r.runners) {
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		delete(now, p)
	}
	r.ended = now
}

// orphans are the processes that had ended before, are still there, and are no
// runners.
func orphans(before, now map[process]bool, runners map[int]bool) map[process]bool {
	found := map[process]bool{}
	for p := range now {
		if before[p] && !runners[p.pid] {
			found[p] = true
		}
	}
	return found
}

// endedChildren are the children of this process that have ended and were not
// waited for.
func endedChildren() map[process]bool {
	found := map[process]bool{}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			if state, started := stat(pid); state == "Z" {
				found[process{pid, started}] = true
			}
		}
	}
	return found
}

// stat is the state of a process and when it was started (proc_pid_stat(5)).
func stat(pid int) (state, started string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	// The name, in parentheses, may have anything in it.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	const startTime = 19 // after the name
	fields := strings.Fields(rest)
	if len(fields) <= startTime {
		return "", ""
	}
	return fields[0], fields[startTime]
}
