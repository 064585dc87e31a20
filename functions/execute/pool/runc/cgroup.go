package runc

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/cgroups"

	"github.com/preheat-dev/preheat/functions/runner/oom"
)

// cgroupParent is the cgroup of all sandboxes of one state folder, so that
// several servers on a machine can tell theirs apart.
func cgroupParent(stateDir string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(stateDir))
	return fmt.Sprintf("/preheat-%08x", h.Sum32())
}

func cgroupPath(stateDir, name string) string { return filepath.Join(cgroupParent(stateDir), name) }

// controllerDir is the folder of a sandbox's cgroup of one controller.
func (m *containers) controllerDir(controller, name string) string {
	path := cgroupPath(m.config.StateDir, name)
	if m.host.Unified {
		return filepath.Join(cgroupRoot, path)
	}
	return filepath.Join(cgroupRoot, controller, path)
}

// set writes a number to a file of a sandbox's cgroup.
func (m *containers) set(controller, file, name string, value uint64) error {
	path := filepath.Join(m.controllerDir(controller, name), file)
	if err := os.WriteFile(path, strconv.AppendUint(nil, value, 10), 0); err != nil {
		return fmt.Errorf("setting %s of sandbox %s: %w", file, name, err)
	}
	return nil
}

// memorySwap bounds memory and swap together, on cgroup v1.
const memorySwap = "memory.memsw.limit_in_bytes"

// setMemory lowers a sandbox's memory limit, in bytes.
func (m *containers) setMemory(name string, limit int64) error {
	switch {
	case !m.host.Cgroups:
		return nil
	case m.host.Unified:
		return m.set("", "memory.max", name, uint64(limit))
	}
	err := m.set("memory", "memory.limit_in_bytes", name, uint64(limit))
	if err == nil && m.host.SwapLimit {
		err = m.set("memory", memorySwap, name, uint64(limit))
	}
	return err
}

// setShares changes a sandbox's share of the processors, in cpu.shares.
func (m *containers) setShares(name string, shares uint64) error {
	switch {
	case !m.host.Cgroups:
		return nil
	case m.host.Unified:
		return m.set("", "cpu.weight", name, cgroups.ConvertCPUSharesToCgroupV2Value(shares))
	}
	return m.set("cpu", "cpu.shares", name, shares)
}

// oomKills is how many processes of a sandbox were killed for memory, seen
// from outside: the runner may have been one of them.
func (m *containers) oomKills(name string) int64 {
	file := "memory.oom_control"
	if m.host.Unified {
		file = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(m.controllerDir("memory", name), file))
	if err != nil {
		return 0
	}
	n, _ := oom.Kills(string(text))
	return n
}

// removeCgroups kills what is left in the cgroups of a state folder and
// removes them.
func removeCgroups(stateDir string, unified bool) error {
	roots := []string{cgroupRoot}
	if !unified {
		var err error
		if roots, err = filepath.Glob(filepath.Join(cgroupRoot, "*")); err != nil {
			return err
		}
	}
	var problems []error
	for _, root := range roots {
		problems = append(problems, removeCgroup(filepath.Join(root, cgroupParent(stateDir))))
	}
	return errors.Join(problems...)
}

// removeCgroup removes one cgroup and those in it, the innermost first.
func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return removeEmptied(dir)
}
