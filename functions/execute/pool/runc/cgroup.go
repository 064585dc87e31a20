package runc

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/runner/oom"
	"github.com/preheat-dev/preheat/internal/pause"
)

// cgroupParent is the cgroup of all sandboxes of one state folder, so that
// several servers on a machine can tell theirs apart.
func cgroupParent(stateDir string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(stateDir))
	return fmt.Sprintf("/preheat-%08x", h.Sum32())
}

func cgroupPath(stateDir, name string) string { return filepath.Join(cgroupParent(stateDir), name) }

// cgroup is a sandbox's, in every hierarchy of cgroup v1 or in the one of v2.
// Nothing in a sandbox can leave it. It is empty, and cannot be set, where the
// host has no cgroups.
type cgroup struct {
	path string
	host Host
}

// dir is its folder in the hierarchy of a controller.
func (g cgroup) dir(controller string) string {
	if g.host.Unified {
		return filepath.Join(g.host.cgroupRoot(), g.path)
	}
	return filepath.Join(g.host.cgroupRoot(), controller, g.path)
}

// set writes to a file of the cgroup.
func (g cgroup) set(controller, file, value string) error {
	if err := os.WriteFile(filepath.Join(g.dir(controller), file), []byte(value), 0); err != nil {
		return fmt.Errorf("setting %s: %w", file, err)
	}
	return nil
}

// setExisting is set for a file that this kernel may not have.
func (g cgroup) setExisting(controller, file, value string) error {
	if err := writeExisting(filepath.Join(g.dir(controller), file), value); err != nil {
		return fmt.Errorf("setting %s: %w", file, err)
	}
	return nil
}

// memorySwap bounds memory and swap together, on cgroup v1.
const memorySwap = "memory.memsw.limit_in_bytes"

// setMemory lowers the memory limit, in bytes.
func (g cgroup) setMemory(limit int64) error {
	value := strconv.FormatInt(limit, 10)
	switch {
	case !g.host.Cgroups:
		return nil
	case g.host.Unified:
		return g.set("", "memory.max", value)
	}
	err := g.set("memory", "memory.limit_in_bytes", value)
	if err == nil && g.host.SwapLimit {
		err = g.set("memory", memorySwap, value)
	}
	return err
}

// limitTogether bounds what the memory of all sandboxes may be together, in
// bytes: the sum of their own limits may be more than the machine has.
func limitTogether(stateDir string, h Host, limit int64) error {
	g := cgroup{path: cgroupParent(stateDir), host: h}
	if !h.Cgroups {
		return nil
	}
	file := "memory.limit_in_bytes"
	if h.Unified {
		file = "memory.max"
	}
	if err := os.MkdirAll(g.dir("memory"), 0o755); err != nil {
		return fmt.Errorf("limiting the memory of all sandboxes: %w", err)
	}
	if err := g.setExisting("memory", file, strconv.FormatInt(limit, 10)); err != nil {
		return fmt.Errorf("limiting the memory of all sandboxes: %w", err)
	}
	return nil
}

// setShares changes the share of the processors, in cpu.shares.
func (g cgroup) setShares(shares uint64) error {
	switch {
	case !g.host.Cgroups:
		return nil
	case g.host.Unified:
		return g.set("", "cpu.weight", strconv.FormatUint(cgroups.ConvertCPUSharesToCgroupV2Value(shares), 10))
	}
	return g.set("cpu", "cpu.shares", strconv.FormatUint(shares, 10))
}

// socketMemory bounds what TCP and UDP hold of sockets that nobody reads, in
// bytes. On cgroup v2 the limit of all memory does; v1 counts it only where it
// has a limit of its own, which the OCI configuration cannot set.
const socketMemory = 32 << 20

// limitSockets must be called before the program runs.
func (g cgroup) limitSockets() error {
	if !g.host.Cgroups || g.host.Unified {
		return nil
	}
	err := g.setExisting("memory", "memory.kmem.tcp.limit_in_bytes", strconv.Itoa(socketMemory))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel that does not count it
	}
	return err
}

// oomKills is how many processes were killed for memory, seen from outside: the
// runner may have been one of them.
func (g cgroup) oomKills() int64 {
	file := "memory.oom_control"
	if g.host.Unified {
		file = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(g.dir("memory"), file))
	if err != nil {
		return 0
	}
	n, _ := oom.Kills(string(text))
	return n
}

// removeCgroups kills what is left in the cgroups of a state folder and
// removes them.
func removeCgroups(ctx context.Context, stateDir string, h Host) error {
	return cgroup{path: cgroupParent(stateDir), host: h}.remove(ctx)
}

// remove kills what is left and removes the cgroup from every hierarchy.
func (g cgroup) remove(ctx context.Context) error {
	if !g.host.Cgroups {
		return nil
	}
	roots := []string{g.host.cgroupRoot()}
	if !g.host.Unified {
		var err error
		if roots, err = filepath.Glob(filepath.Join(g.host.cgroupRoot(), "*")); err != nil {
			return err
		}
	}
	var problems []error
	for _, root := range roots {
		problems = append(problems, removeCgroup(ctx, filepath.Join(root, g.path)))
	}
	return errors.Join(problems...)
}

// removeCgroup removes one folder and those in it, the innermost first.
func removeCgroup(ctx context.Context, dir string) error {
	err := os.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(ctx, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return removeEmptied(ctx, dir)
}

// removeEmptied removes a folder whose processes it kills first. A server that
// was killed may have left them frozen.
func removeEmptied(ctx context.Context, dir string) error {
	thaw := map[string]string{"freezer.state": "THAWED", "cgroup.freeze": "0"}
	for {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for file, value := range thaw {
			_ = writeExisting(filepath.Join(dir, file), value)
		}
		for _, pid := range processes(dir) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if !pause.For(ctx, 5*time.Millisecond) {
			return fmt.Errorf("cgroup %s does not become empty: %w", dir, err)
		}
	}
}

// processes are those in a cgroup's folder, none if there is no such folder.
func processes(dir string) []int {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		// Those of another process namespace are 0.
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// writeExisting writes to a file that exists.
func writeExisting(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
