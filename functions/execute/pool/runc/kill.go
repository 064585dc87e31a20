package runc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/internal/pause"
)

// How the processes of a cgroup are ended without any help from inside.
//
// A process that was killed must be scheduled once more to end, and a program
// may have arranged that its sandbox's first process never is: by its
// scheduling class, its priority, its processor. So every process is killed,
// not the first alone. On cgroup v2 the kernel does that (cgroup.kill). On v1
// the cgroup is frozen meanwhile, so that none of them multiplies, and what is
// frozen takes no processor from those that are still to be.

// errAlive says that processes live on after they have been killed.
var errAlive = errors.New("processes are still alive")

const (
	// frozenWithin is how long a pass waits until all processes are frozen. It
	// goes on without those that are not, for the next pass.
	frozenWithin = 100 * time.Millisecond
	// passPause is between two passes, for the killed to end.
	passPause = 2 * time.Millisecond
	// slowAfter is how long the killed may take before they get help.
	slowAfter = 20 * time.Millisecond
)

// freezer is the folder that has cgroup.procs and the state of freezing.
func (g cgroup) freezer() string { return g.dir("freezer") }

// setFrozen freezes or thaws all processes (Linux, cgroup-v1/freezer-subsystem
// and cgroup-v2). It takes effect by and by.
func (g cgroup) setFrozen(frozen bool) error {
	file, value := "freezer.state", "THAWED"
	switch {
	case g.host.Unified:
		file, value = "cgroup.freeze", strconv.Itoa(map[bool]int{true: 1}[frozen])
	case frozen:
		value = "FROZEN"
	}
	return writeExisting(filepath.Join(g.freezer(), file), value)
}

// frozen reports whether all processes have come to rest.
func (g cgroup) frozen() bool {
	file, state := "freezer.state", "FROZEN\n"
	if g.host.Unified {
		file, state = "cgroup.events", "frozen 1\n"
	}
	text, err := os.ReadFile(filepath.Join(g.freezer(), file))
	return err == nil && strings.Contains(string(text), state)
}

// members are the processes but the one that is spared.
func (g cgroup) members(spared int) []int {
	return slices.DeleteFunc(processes(g.freezer()), func(pid int) bool { return pid == spared })
}

// kill kills every process once.
func (g cgroup) kill() {
	if !g.host.Cgroups || g.host.Unified && writeExisting(filepath.Join(g.freezer(), "cgroup.kill"), "1") == nil {
		return
	}
	for _, pid := range g.members(0) {
		g.killMember(pid)
	}
}

// killMember kills a process if it is in the cgroup: the one that was listed may
// have ended, and its number may be another's by now.
func (g cgroup) killMember(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(fd) }()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err == nil && strings.Contains(string(text), g.path+"\n") {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// empty kills every process until there is none.
func (g cgroup) empty(ctx context.Context) error {
	if !g.host.Cgroups {
		return nil
	}
	// They have just been killed, and most need no more than that.
	for end := time.Now().Add(slowAfter); len(g.members(0)) > 0; {
		if time.Now().After(end) {
			_ = g.setShares(sharesWarm) // the sooner they end
			_, err := g.killAllBut(ctx, 0)
			return err
		}
		if !pause.For(ctx, time.Millisecond) {
			return fmt.Errorf("%w: %w", errAlive, context.Cause(ctx))
		}
	}
	return nil
}

// killAllBut kills every process but one, until there is none, and reports
// whether there were any.
func (g cgroup) killAllBut(ctx context.Context, spared int) (bool, error) {
	for some := false; ; some = true {
		members := g.members(spared)
		if len(members) == 0 {
			return some, nil
		}
		if err := g.killPass(ctx, spared); err != nil {
			return true, err
		}
		if !pause.For(ctx, passPause) {
			return true, fmt.Errorf("%d %w: %w", len(members), errAlive, context.Cause(ctx))
		}
	}
}

// killPass kills the processes that there are now. All of them are frozen
// meanwhile and thawed at the end: on v1 the frozen do not end.
func (g cgroup) killPass(ctx context.Context, spared int) error {
	if err := g.setFrozen(true); err != nil {
		return fmt.Errorf("freezing processes: %w", err)
	}
	for end := time.Now().Add(frozenWithin); !g.frozen() && time.Now().Before(end); {
		if !pause.For(ctx, time.Millisecond) {
			break
		}
	}
	for _, pid := range g.members(spared) {
		g.killMember(pid)
	}
	if err := g.setFrozen(false); err != nil {
		return fmt.Errorf("thawing processes: %w", err)
	}
	return nil
}
